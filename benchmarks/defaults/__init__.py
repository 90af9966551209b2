"""The measurements behind docs/defaults.md: shared folds and tables, and a module per default."""
