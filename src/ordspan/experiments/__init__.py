"""The paper's experiments: what to run, running it, one results table, figures and report."""
