"""Models on disk and in memory: the model file, the checkpoint, models of tables."""
