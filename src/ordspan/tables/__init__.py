"""The formats of files, and the endings of their names, without an import."""

FORMATS = {
    "csv": (".csv", ".tsv"),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "xlsx": (".xlsx",),
    "sav": (".sav", ".zsav"),
    "dta": (".dta",),
    "svmlight": (".txt", ".svm", ".svmlight", ".libsvm", ".letor"),
}
