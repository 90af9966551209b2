"""What a command cannot do is told in one line, with the way out, and nothing is written."""

import os
import shlex

import numpy as np
import pytest

from commands.tables import ratings, said, trained, write_table
from estimators.examples import graded
from ordspan import CalibratedOrdinal, KernelOrdinalPA, OrdinalPA, save

POSIX = pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX")
SPARSE = "1 qid:4 1:0.5 3:2\n2 qid:4 2:1\n3 qid:5 1:3 2:1 3:1\n"
FILES = {
    "rows.svm": SPARSE * 30,
    "no-qid.svm": "3 1:3\n",
    "index-7.svm": "1 7:1\n",
    "one-grade.csv": "size,age,town,grade\n1,2,Ulm,best\n",
    "no-size.csv": "age,town,grade\n1,Ulm,low\n2,Ulm,top\n",
    "header.csv": "size,age,town,grade\n",
    "empty.csv": "",
    "renamed.csv": "Size,age\n1,2\n",
    "others.csv": "x,y\n1,2\n",
    "ranked.csv": "size,age,rank,row\n1,2,3,4\n",
    "word.csv": "size,age\n1,2\n1,old\n",
    "mine.checkpoint": "my own",
    "results.txt": "my own",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files and models, good and bad."""
    folder = tmp_path_factory.mktemp("refusals")
    for name, content in FILES.items():
        (folder / name).write_text(content)
    write_table(ratings(), folder / "rows.csv")
    third = np.where(np.arange(300) % 3, ratings()["grade"].to_pylist(), "none")
    write_table(ratings().set_column(4, "grade", [third]), folder / "third.csv")
    trained(folder, "--drop", "town")
    trained(folder, "--drop", "town", "--missing", "error", name="strict")
    trained(folder, "--hash", "town", name="hashed")
    trained(folder, "--drop", "town", "--learner", "svm", name="svm")
    said("train", folder / "rows.svm", "--model", folder / "sparse")
    X, y, _ = graded()
    kernel = KernelOrdinalPA(random_state=0).fit(X, y)
    save(kernel, folder / "kernel")
    save(CalibratedOrdinal(kernel).fit(X, y), folder / "calibrated")
    save(OrdinalPA(random_state=0).fit(X, y), folder / "plain")
    (folder / "folder.csv").mkdir()
    if os.name == "posix":
        os.mkfifo(folder / "pipe.csv")
        (folder / "a").symlink_to(folder / "b")
        (folder / "b").symlink_to(folder / "a")
    return folder


def contents(folder):
    return {path.name: path.is_file() and path.read_bytes() for path in folder.iterdir()}


TRAIN = "train rows.csv --label grade --grades low,mid,high,top --drop id --model m"
GO_ON = "train rows.csv --from model --model m"
PREDICT = "predict rows.csv --model model --out out.csv"
STRICT = "--model strict --on-bad-row raise --out out.csv"
EVALUATE = "evaluate rows.csv --model model"
SKIP = "--model model --on-bad-row skip"
KERNEL = "holds an estimator (KernelOrdinalPA) without feature weights, for which there is no"
ONLY_PA = "Dask supports only the learner pa"
REFUSED = [
    (f"{TRAIN} --label x9", "no column 'x9'"),
    (f"{TRAIN} --grades low,mid", "is not among"),
    (f"{TRAIN} --shuffle --C -1", "C must be a finite number above 0"),
    (f"{TRAIN} --learner kernel --gamma wide", "distance, scale, auto or a number, got 'wide'"),
    (f"{TRAIN} no-size.csv --features size", "no-size.csv: no column 'size'; the columns are age"),
    (f"{TRAIN} --budget 3", "the learner pa has no parameter budget; it has variant"),
    (f"{TRAIN} --learner svm --variant PA", "the learner svm has no parameter variant"),
    (f"{TRAIN} --learner svm --passes 2", "svm is fitted in one step; leave out passes="),
    (f"{TRAIN} --learner kernel --loss hinge", "the learner kernel has no parameter loss"),
    (f"{TRAIN} --checkpoint-every often", "'often' is neither rows, such as 100000, nor a time"),
    (f"{TRAIN} --grades @none.txt", "none.txt: No such file or directory"),
    (f"{TRAIN} --grades 'low,mid\r,high'", r"'low,mid\r,high' contains a line break; write the"),
    (f"{TRAIN} --drop 'a,b\r,c'", r"'a,b\r,c' contains a line break; write the list on one line"),
    (f"{TRAIN} --na agee:99", "; did you mean 'age'?"),
    (f"{TRAIN} --resume", "so there is nothing to resume; leave out"),
    (f"{TRAIN} --model nowhere/m", "nowhere/m: cannot be written (No such file or"),
    (f"{TRAIN} --model .", ". is a folder, pipe or device; give the name of a file"),
    (f"{TRAIN} --model ''", "model: a name is empty; give a name, or leave the option out"),
    (f"{TRAIN} --model rows.csv", "rows.csv is an input of this command"),
    (f"{TRAIN} --model mine --overwrite", "is not a model that ordspan wrote"),
    (f"{TRAIN} --model a", "a: cannot be written (Too many levels of symbolic links)"),
    (f"{TRAIN} --learner svm --dask local", ONLY_PA),
    (f"{TRAIN} --hold-out 0.1 --dask local", ONLY_PA),
    (f"{TRAIN} --resume --dask local", "so there is nothing to resume"),
    (f"{GO_ON} --dask local", ONLY_PA),
    ("train - --label g --grades 1,2 --model m --dask local", "all rows of files; train without"),
    (f"{TRAIN} --hold-out 0.001", "holding out 0.001 of 300 rows leaves none to learn or none"),
    (f"{GO_ON} --C 2", "(--C) cannot be given with start= (--from), because the model"),
    (f"{GO_ON} --grades 1..4", "(--grades) cannot be given with start= (--from)"),
    (f"{GO_ON} --drop size", "(--drop) cannot be given with start= (--from)"),
    (f"{GO_ON} --from svm", "svm holds an OrdinalSVM, which is fitted in one step"),
    ("train no-size.csv --from model --model m", "no column 'size'"),
    ("train one-grade.csv --from model --model m", "grade 'best' is not among the model's"),
    ("train header.csv --from model --model m", "there is a header but no rows"),
    (
        f"predict renamed.csv {STRICT}",
        "no column 'size'; the columns are Size, age; did you mean 'Size'?",
    ),
    (f"predict others.csv {STRICT}", "no columns 'size', 'age'; the columns are x, y"),
    (f"predict empty.csv {STRICT}", "empty.csv: the file is empty"),
    (f"predict header.csv {STRICT}", "no row to predict; does it contain only a header?"),
    (f"{PREDICT} --out none/out.csv", "none/out.csv: cannot be written (No such file"),
    (f"{PREDICT} --out out.txt", "out.txt: unknown file extension '.txt'; choose .csv or .parquet"),
    (f"{PREDICT} --out rows.csv", "rows.csv is an input of this command; write to another file"),
    (f"{PREDICT} --out folder.csv", "folder.csv is a folder, pipe or device"),
    (f"{PREDICT} --out pipe.csv", "pipe.csv is a folder, pipe or device"),
    ("predict ranked.csv --model model --keep rank", "cannot keep the column 'rank': predictions"),
    ("predict ranked.csv --model model --where --keep row", "cannot keep the column 'row'"),
    (f"{PREDICT} --keep ID", "no column 'ID'; the columns are id, size"),
    (f"{PREDICT} --model none", "none: no such model file; ordspan train writes one"),
    (f"{PREDICT} --model folder.csv", "folder.csv: no such model file; ordspan train"),
    (f"{PREDICT} --model rows.csv", "rows.csv: not an ordspan model file"),
    (f"{PREDICT} --model plain", "plain holds an estimator (OrdinalPA) that was saved from Python"),
    ("predict '' --model model", "a name is empty; give a name, or leave the option out"),
    ("predict no-qid.svm --model sparse --keep qid", "row 1: the rows from here on have no 'qid'"),
    (
        "predict index-7.svm --model sparse --on-bad-row raise",
        "'7:1' is not of the form index:value, with indices that rise from 1 to at most 3",
    ),
    (f"{EVALUATE} --html none/page.html", "cannot be written (No such file or directory); choose"),
    (f"{EVALUATE} --html rows.csv", "unknown file extension '.csv'; choose .html"),
    (f"{EVALUATE} --html model", "choose .html or .htm"),
    (f"{EVALUATE} --group q", "no column 'q'; the columns are id, size"),
    (f"{EVALUATE} --label x", "no column 'x'; the columns are id, size"),
    (f"{EVALUATE} --label a --lower b", "give either a label"),
    (f"{EVALUATE} --lower size --upper size", "lower and upper are both column 'size'"),
    (f"{EVALUATE} --model sparse", "rows.csv: the model needs svmlight rows, as in training"),
    ("train rows.csv rows.svm --label grade --model m", "rows.svm: svmlight files and tables"),
    ("evaluate rows.svm --model model", "svmlight rows have no named columns, but the model"),
    ("evaluate rows.svm --model sparse --group size", "leave out the columns of labels"),
    ("evaluate header.csv --model model", "no row to evaluate; does it contain only a header, "),
    ("evaluate word.csv --model model", "no column 'grade', which held the label in training"),
    (f"evaluate third.csv {SKIP}", "100 of 300 rows (33.3%) cannot be used"),
    (f"evaluate third.csv {SKIP}", "--allow-skipped 0.34"),
    (
        "train third.csv --label grade --grades 1,2 --on-bad-row skip --allow-skipped 1 --model m",
        "300 of 300 rows (100.0%) cannot be used",
    ),
    (f"evaluate one-grade.csv {SKIP}", "1 of 1 rows (100.0%) cannot be used; the first: "),
    ("export model m.txt", "m.txt: unknown file extension '.txt'; choose .onnx"),
    ("export model none/m.onnx", "cannot be written (No such file or directory); choose"),
    ("export hashed m.onnx", "hashes the words of town, for which there is no standard ONNX"),
    ("export kernel m.onnx", KERNEL),
    ("export calibrated m.onnx", KERNEL),
    ("info folder.csv", "folder.csv: no such model file"),
    ("reproduce --datasets boston", "unknown data set 'boston'; choose one of california, abalone"),
    ("reproduce --algorithms SVM", "unknown algorithm 'SVM'; choose one of PA, PA-I, PA-II, PRank"),
    ("reproduce --fractions half", "whole percentages from 0 to 100, got 'half'"),
    ("reproduce --fractions 150", "whole percentages"),
    ("reproduce --data-dir no-such-folder --datasets abalone", "no-such-folder"),
    ("reproduce --out results.txt/out", "results.txt"),
    ("reproduce --report-only .", "has no results.npz; run ordspan reproduce first"),
]
WRONG = [
    ("nonsense", "nonsense"),
    (f"{TRAIN} --nonsense", "--nonsense"),
    (f"{TRAIN} --variant x", "'PA', 'PA-I', 'PA-II'"),
    (f"{TRAIN} --format x", "'csv', 'jsonl', 'parquet', 'arrow', 'xlsx'"),
    (f"{TRAIN} --on-bad-row x", "'raise', 'skip'"),
    (f"{TRAIN} --learner x", "'pa', 'kernel', 'svm'"),
    (f"{TRAIN} --missing x", "'mean', 'error'"),
    ("predict rows.csv --model model --json", "--json"),
    ("info model --top -1", "--top"),
    ("reproduce --solver newton", "'newton' is not one of 'exact', 'sca'"),
    ("reproduce --runs none", "--runs"),
]


@POSIX
@pytest.mark.parametrize(("line", "message"), REFUSED)
def test_what_cannot_be_done_is_told_and_writes_nothing(folder, monkeypatch, line, message):
    monkeypatch.chdir(folder)
    before = contents(folder)
    printed = said(*shlex.split(line), code=1)
    assert printed.startswith("error: ")
    assert message in printed
    assert contents(folder) == before


@pytest.mark.parametrize(("line", "message"), WRONG)
def test_wrong_usage_is_told_and_writes_nothing(folder, monkeypatch, line, message):
    monkeypatch.chdir(folder)
    before = contents(folder)
    assert message in " ".join(said(*shlex.split(line), code=2).split())
    assert contents(folder) == before
