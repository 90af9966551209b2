"""The service: predictions and labels over HTTP, a log that survives a kill, and its pages."""
