"""Every compiled walk once, on a few rows: a program to run with and without the compiler."""

import json
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import ordspan
from ordspan import estimators
from ordspan.learners import KernelLearner, LinearLearner

N, D, K = 40, 3, 3
MODELS = {
    "exact": ("OrdinalPA", {}),
    "printed": ("OrdinalPA", {"variant": "PA", "solver": "sca", "balanced": False}),
    "PRank": ("PRank", {}),
    "classes": ("MulticlassPA", {}),
    "SVM": ("OrdinalSVM", {"max_iter": 20}),
    "rbf": ("KernelOrdinalPA", {"budget": 10}),
    "poly": ("KernelOrdinalPA", {"kernel": "poly", "coef0": 1.0}),
}


def some_data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) * rng.integers(0, 2, (N, D))
    ranks = np.clip(np.round(X[:, 0] + 2), 1, K).astype(int)
    return X, ranks


def of_estimators(X, ranks):
    y = np.column_stack([ranks, np.minimum(ranks + np.arange(N) % 2, K)])
    for name, (kind, given) in MODELS.items():
        for matrix in (X, sp.csr_array(X)):
            model = getattr(estimators, kind)(random_state=0, **({"max_iter": 2} | given))
            model.fit(matrix, y)
            if name != "SVM":
                model.partial_fit(matrix, y)
            yield f"{name} {type(matrix).__name__}", model.decision_function(matrix)


def of_learners(X):
    for learner in (LinearLearner(D, K), KernelLearner(D, K)):
        ranks = [learner.learn_one(X[0], 1), learner.predict_one(X[0])]
        if learner.walks:
            ranks.append(learner.learn_sparse(np.ones(2), np.array([2, 0]), 2, 3))
        yield type(learner).__name__, [*ranks, *learner.latent(X)]


def of_files(X, ranks, folder):
    rows = list(zip(X.tolist(), ranks.tolist(), strict=True))
    csv = "a,b,word,grade\n" + "".join(
        f"{row[0]},{row[1]},w{i % 3},{rank}\n" for i, (row, rank) in enumerate(rows)
    )
    svmlight = "".join(f"{rank} 1:{row[0]} 3:{row[2]}\n" for row, rank in rows)
    for name, text, options in (("a.csv", csv, {"label": "grade"}), ("a.svm", svmlight, {})):
        file, model = Path(folder, name), Path(folder, f"{name}.ordspan")
        file.write_text(text)
        ordspan.train_files(file, model, **options)
        yield name, ordspan.load(model).estimator.coef_


def results(folder):
    """Numbers by the name of what found them."""
    X, ranks = some_data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [*of_estimators(X, ranks), *of_learners(X), *of_files(X, ranks, folder)]
    return {name: np.ravel(numbers).tolist() for name, numbers in found}


def show_results(folder):
    print(json.dumps(results(folder)))
