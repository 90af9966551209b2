"""Imported once by the process that servers are forked from: all is imported and compiled.

Polars is imported, but not used: it cannot be used again after a fork.
"""

import warm_server

warm_server.warm_up()
