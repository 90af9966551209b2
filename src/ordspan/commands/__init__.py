"""What the command line does with files, as functions: train, predict, evaluate, export, info."""
