"""What train, predict, evaluate, export, info and reproduce print."""

from typing import Any

from ordspan.cli.app import command, print_notes, print_table, prints, progress_bar, say, tell
from ordspan.commands import jobs
from ordspan.wording import in_words, plural

MAX_CHARACTERS = 70
"""A confusion matrix is not printed if the names of its grades are wider."""
MAX_CLASSES = 8
"""Weight vectors to show for models with one per grade; --json has all."""


@prints(
    jobs.TrainJob,
    "ratings.csv --label grade --model ratings.ordspan",
    "If there is a checkpoint beside the model, --resume continues it.",
)
def train(summary: dict[str, Any]) -> None:
    """Train a model from files of any size, in bounded memory.

    The label is one column (--label) of grades or ranges, or two columns
    (--lower, --upper). All other columns are features: numbers are
    standardised, text with few distinct values is one-hot encoded, and
    missing values are filled in. The command inspects the files first and
    prints what it decided.

    A checkpoint is kept next to the model. After a crash, Ctrl-C or SIGTERM,
    run the same command with --resume: it ends with the same model, byte for
    byte.
    """
    from ordspan.commands.evaluate_page import compared, percent, shown_range, verdict

    ranges, classes = summary["ranges"], summary["classes"]
    passes = max(1, len(summary["mae"]))
    say(
        f"{plural(summary['rows'] // passes, 'row')}"
        f"{f', {ranges // passes:,} of them ranges,' * (ranges > 0)}"
        f"{f' in {passes} passes,' * (passes > 1)} in "
        f"{summary['seconds']:.1f} s, {plural(summary['features'], 'feature')}, "
        f"{len(classes)} grades: {in_words(classes)}."
    )
    print_notes(summary)
    mae, constant = summary["mae"], summary["constant"]
    if mae:  # later passes have seen the rows
        say("Each row predicted before it was learned:")
        say("  " + compared(mae[0], constant["mae"], constant["grade"]))
    if len(mae) > 1:
        say(f"MAE of pass {len(mae)}, whose rows were seen before: {mae[-1]:.4f}.")
    if held_out := summary.get("held_out"):
        say(f"On {plural(held_out['rows'], 'held-out row')}:")
        say("  " + verdict(held_out))
        shown = shown_range(held_out["probabilities"]["ranges"])
        hold = f"{100 * shown['coverage']:.0f} % ranges hold the grade of"
        span = f"span {shown['mean_width']:.1f} grades on average"
        say(f"  {hold} {percent(shown['expected'])} of the rows and {span}.")
    if "fitted_mae" in summary:
        say("On the training rows:")
        say("  " + compared(summary["fitted_mae"], constant["mae"], constant["grade"]))
    if (leak := summary["explained_by"]) is not None:
        alone = f"{leak['column']!r} alone explains {100 * leak['share']:.0f} % of this"
        say(f"{alone}; is it known before the grade is?")
    say(f"Written to {summary['model']}.")


@prints(
    jobs.PredictJob,
    "new.csv --model ratings.ordspan --range 0.9 --out graded.csv",
    "No file was written.",
)
def predict(summary: dict[str, Any]) -> None:
    """Predict the grade of every row, in order and in bounded memory.

    The output has the kept columns, then prediction (the grade), rank (1 is the lowest), score
    (the latent score) and margin (distance of the score to the nearest threshold, a measure of
    confidence); with --range also lower and upper, with --proba one column per grade, such as
    P(high). Columns are matched by name; extra columns are ignored. There is one output row per
    input row; if a row cannot be predicted, its cells are empty and the column reason says why.
    """
    if summary["empty"]:
        text = f"{summary['empty']:,} of {summary['rows']:,} rows could not be predicted"
        lines = [f"{text}; the column reason says why, such as:", *summary["empty_examples"]]
        say("\n  ".join(lines), err=True)
    print_notes(summary, err=True)
    if summary["out"] != jobs.STDOUT:
        text = f"{plural(summary['rows'], 'row')} in {summary['seconds']:.1f} s"
        say(f"{text}, written to {summary['out']}.", err=True)


@prints(jobs.EvaluateJob, "ratings.csv --model ratings.ordspan")
def evaluate(summary: dict[str, Any]) -> None:
    """Measure how well a model grades the rows of files, in bounded memory.

    Labels are read from the columns used in training, or from those named
    here. MAE is the mean distance in grades to the label or its range;
    macro MAE, accuracy, kappa and the confusion matrix cover the rows with
    an exact label. Rows without a label are left out. Each measure is shown
    next to the best constant: the best value for predicting the same grade
    for every row.

    RPS is the ranked probability score and the log score the mean of
    -ln P(label); 0 is best for both, and the best constant is the same
    probabilities for every row. Ranges are counted for each coverage of
    predict --range. If a label is itself a range, the true grade is unknown:
    the share of predicted ranges that contain it lies between the share that
    contain the whole label and the share that overlap it. The expected share
    follows from the probabilities of the model.

    NDCG at 1, 5 and 10 is the mean over queries with a relevant row, one
    above the lowest grade. Gains are 2^(rank-1)-1, tied scores share their
    positions, and rows labelled by a range are ignored. The rows of a query
    must be consecutive.
    """
    from ordspan.commands.evaluate_page import describe_files, measures, range_table, verdict

    title = f"{summary['model']} on {describe_files(summary['files'])}"
    heads = ("measure", "model", "best constant", "over")
    print_table(title, heads, [row[:4] for row in measures(summary)], *heads[::2], "over")
    print_table("Ranges by coverage", *range_table(summary))
    names = [str(grade) for grade in summary["classes"]]
    wide = sum(len(name) + 3 for name in names) > MAX_CHARACTERS
    if summary["exact_rows"] and wide:
        what = f"The confusion matrix of {len(names)} grades"
        say(f"{what} is too wide to print: see it with --html or --json.")
    elif summary["exact_rows"]:
        counts = zip(names, summary["confusion"], strict=True)
        rows = [[name, *row] for name, row in counts if any(row)]
        title = "Rows by true grade (down) and predicted grade (across)"
        print_table(title, ["true", *names], rows, "true")
    print_notes(summary)
    say(verdict(summary))
    if "page" in summary:
        say(f"Written to {summary['page']}; open it in a browser.")


@prints(jobs.ExportJob, "ratings.ordspan ratings.onnx")
def export(summary: dict[str, Any]) -> None:
    """Write a model as one ONNX graph of standard operators, for other runtimes.

    Inputs: X, the raw numbers, one example per row, NaN if missing; and words, strings, if the
    model has text columns. Outputs: rank (1 is the lowest), prediction (the grade) and score; for
    a calibrated model also probabilities (one column per grade), lower and upper (the ends of the
    range, one column per coverage). Names and order of the columns, grades, thresholds and
    coverages are in the metadata of the file. Both types compute in float64, so the ranks are
    those of ordspan predict for the same values, unless a score is within rounding of a threshold.
    Hashed text and kernels cannot be exported.
    """
    size = f"{summary['features']} features, {len(summary['classes'])} grades"
    say(f"{size}, {summary['dtype']}, written to {summary['out']}.")


@prints(jobs.InfoJob, "ratings.ordspan --top 10")
def info(about: dict[str, Any]) -> None:
    """Show the parameters, grades, calibration, largest weights and training of a model."""
    print_table("", ("", ""), properties(about), "")
    print_grades(about)
    if calibration := about["calibration"]:
        rows, slope = plural(calibration["rows"], "row"), in_words(calibration["slope"])
        chance = f"1 / (1 + exp({slope} * score - cut))"
        say(f"Calibrated on {rows}: the probability of a grade or a lower one is {chance}.")
        if calibration["labels"] == "contain":
            say("Ranges are calibrated to contain whole labels if these are ranges themselves.")
        reaches = [
            (f"{100 * one['coverage']:g} %", "all grades" if one["reach"] is None else one["reach"])
            for one in calibration["ranges"]
        ]
        heads = ("coverage", f"reach ({calibration['reach_unit']})")
        print_table("Ranges: all grades within reach of the score", heads, reaches)
    if about["weights"]:
        print_weights(about)


def properties(about: dict[str, Any]) -> list[tuple[str, Any]]:
    """What a model is, what it reads and how it was trained, without what does not apply."""
    columns, training = about["columns"] or {}, about["training"] or {}
    first = ("model", "kind", "bytes", "format", "estimator", "parameters", "features")
    told = {name: about[name] for name in first}
    told |= {f"words of {name}": len(words) for name, words in columns.get("words", {}).items()}
    if columns.get("hashed"):
        told[f"hashed words of {in_words(columns['hashed'])}"] = 2 ** columns["hash_bits"]
    told |= {
        "hashed sentences of": columns.get("sentences"),
        "svmlight features": columns.get("n_sparse"),
        "numbers": len(columns.get("numbers", ())),
        "missing indicators": len(columns.get("missing_indicators", ())),
        "standardised": ("no", "yes")[columns["standardise"]] if columns else None,
        "label": columns.get("label"),
        "grades": len(about["classes"]),
        **{name: about[name] for name in ("support_vectors", "updates", "passes")},
        **about["fitted"],
    }
    if training:
        told |= {
            "trained from": training["settings"]["files"],
            "codes for no answer": training["settings"].get("na"),
            "continued from": training.get("from"),
            "rows learned": training["rows"],
            "bad rows skipped": training.get("skipped"),
            "MAE before learning, by pass": training.get("mae"),
            "best constant": training.get("constant"),
            "columns left out": [f"{name} ({why})" for name, why in training["left_out"].items()],
        }
    told |= {f"checkpoint {name}": value for name, value in (about["checkpoint"] or {}).items()}
    return [(name.replace("_", " "), value) for name, value in told.items() if value]


def print_grades(about: dict[str, Any]) -> None:
    """Every grade with its range of scores, and its cut if calibrated."""
    grades = [str(grade) for grade in about["classes"]]
    columns: dict[str, Any] = {"rank": range(1, len(grades) + 1), "grade": grades}
    if (thresholds := about["thresholds"]) is not None:
        columns |= {"score from": [None, *thresholds], "to below": [*thresholds, None]}
    if about["calibration"]:
        columns["cut (log-odds)"] = [*about["calibration"]["cuts"], None]
    print_table("Grades", columns, zip(*columns.values(), strict=True), "grade")


def print_weights(about: dict[str, Any]) -> None:
    """The largest weights; one column per grade if each has its own."""
    rows, classes = about["weights"], about["classes"][:MAX_CLASSES]
    vectors, scaled = isinstance(rows[0]["weight"], list), any(row["spread"] for row in rows)
    lines = []
    for row in rows:
        weights = row["weight"][:MAX_CLASSES] if vectors else [row["weight"]]
        scale = [in_words(row["mean"], row["spread"] or 0.0), in_words(row["spread"], 0.0)]
        lines.append([row["feature"], *weights, *(scale if scaled else ())])
    heads = map(str, classes) if vectors else ["weight"]
    heads = ["feature", *heads, *(("mean", "spread") if scaled else ())]
    print_table("Largest weights", heads, lines, "feature")
    count = f"{len(rows):,} of {about['features']:,} features"
    unit = "standard deviation of a number, or by a word" if scaled else "unit of the feature"
    say(f"{count}; a weight is the change in score per {unit}.")


@command(
    jobs.ReproduceJob,
    "--datasets abalone --runs 10 --out quick",
    "Run the same command again to continue.",
)
def reproduce(job: jobs.ReproduceJob, json: bool) -> None:
    """Run the paper's experiments: figures, tables, claims and one page.

    After an interruption, run the same command again to continue. The same
    settings give the same bytes in results.npz, whatever --jobs is.
    """
    from ordspan.clock import working_time
    from ordspan.experiments.claims import count_verdicts
    from ordspan.experiments.reproduce import reproduce as run

    begun = working_time()
    with progress_bar(counted=True) as update:
        results, summary, claims = run(job, update)
    folder, counts = job.report_only or job.out, count_verdicts(claims)
    if json:
        tell({"summary": summary, "claims": counts, "out": folder}, json)
        return
    print_summary(summary)
    hold, fail, not_run = counts.values()
    say(f"Of the paper's claims {hold} hold, {fail} do not, {not_run} were not run.")
    took = "" if job.report_only else f" in {working_time() - begun:.1f} s"
    files = "results.npz, summary.csv, figure1 and figure2 (png, pdf), claims.csv, report.html"
    say(f"Written to {folder}{took}: {files}.")
    say(f"Open {folder}/report.html in a browser.")
    for name, reason in results.settings["unavailable"].items():
        say(f"Not run: {name}: {reason}.")


def print_summary(summary: list[dict[str, Any]]) -> None:
    """Print a table of the errors after the last trial, one row per curve."""
    rows = []
    for row in summary:
        labels = f"{row['labels']} % ranges" if row["labels"] else "exact"
        C = "" if row["C"] is None else f"{row['C']:g}"
        mae = f"{row['mae']:.3f}" + (f" ± {row['sem']:.3f}" if row["runs"] > 1 else "")
        used = f"{row['interval_mae']:.3f}"
        rows.append((row["dataset"], labels, row["algorithm"], C, mae, used))
    title = "Mean absolute error after the last trial (± standard error)"
    heads = ("data set", "labels", "algorithm", "C", "MAE", "MAE to the labels used")
    print_table(title, heads, rows, "data set", "algorithm")
