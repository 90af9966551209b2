"""The formats of files, each with its reader in `formats` and the endings of names."""

FORMATS = {
    "csv": ("CsvTable", ".csv", ".tsv"),
    "jsonl": ("JsonTable", ".jsonl", ".ndjson"),
    "parquet": ("ParquetTable", ".parquet", ".pq"),
    "arrow": ("ArrowTable", ".arrow", ".feather", ".ipc"),
    "xlsx": ("ExcelTable", ".xlsx"),
    "sav": ("SurveyTable", ".sav", ".zsav"),
    "dta": ("SurveyTable", ".dta"),
    "svmlight": ("SvmlightTable", ".txt", ".svm", ".svmlight", ".libsvm", ".letor"),
}
