"""Imported once by the process that others are forked from: all is imported and compiled.

Polars is imported, but not used: it cannot be used again after a fork.
"""

import warm_trainer

warm_trainer.warm_up()
