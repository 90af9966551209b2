"""Files larger than memory, read in chunks of rows: CSV, JSON lines, Parquet and svmlight."""
