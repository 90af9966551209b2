"""The comparison with other libraries: what to run, running it, the one table, page and figure."""
