"""The paper's experiments: protocol, runs, results, claims, figures, report; the printed search."""
