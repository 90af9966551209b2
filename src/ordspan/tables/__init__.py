"""Files of any size as batches of rows: text, Parquet, Arrow, Excel and svmlight."""
