"""The paper's experiments: protocol, runner, results table, figures and report."""
