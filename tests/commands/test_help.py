"""The help of the commands for files: examples that work when pasted, and completion."""

from commands.tables import example, ratings, said, write_table

IN_ORDER = ["train", "predict", "evaluate", "info", "export"]


def test_the_examples_of_the_help_work_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = ratings().to_pandas()
    ranks = table["grade"].map({"low": 1, "mid": 2, "high": 3, "top": 4})
    table.assign(grade=ranks).drop(columns=["id", "town"]).to_csv("ratings.csv", index=False)
    write_table(ratings().drop_columns(["grade"]), "new.csv")
    for name in IN_ORDER:
        said(*example(name))
        said(name, code=2)
    written = {"ratings.csv", "new.csv", "ratings.ordspan", "graded.csv", "ratings.onnx"}
    assert {path.name for path in tmp_path.iterdir()} == written
