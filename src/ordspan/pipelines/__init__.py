"""scikit-learn's transformers in model files: parameters and numbers, never code."""
