"""Untrained models to start a service with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordspan.catalog import ESTIMATORS, PA, learner_parameters, make_learner
from ordspan.learners import Calibration
from ordspan.models.table import TableModel
from ordspan.tables.encoder import Encoder, Recipe


def empty_model(
    classes: NDArray[Any], columns: Sequence[str], text: Sequence[str] = ()
) -> TableModel:
    """An untrained model that learns the scale of its columns online.

    Parameters
    ----------
    classes : array
        The grades from lowest to highest.
    columns : sequence of str
        The columns of a record.
    text : sequence of str
        Text columns, which are hashed; the others are numeric.

    Returns
    -------
    TableModel
        It learns with the defaults of ``ordspan train``.
    """
    if unknown := [name for name in text if name not in columns]:
        raise ValueError(f"the text column {unknown[0]!r} is not one of the columns")
    if twice := [name for place, name in enumerate(columns) if name in columns[:place]]:
        raise ValueError(f"column {twice[0]!r} is named twice")
    numbers = tuple(name for name in columns if name not in text)
    recipe = Recipe(numbers, numbers, hashed=tuple(name for name in columns if name in text))
    return untrained(Encoder(recipe), classes, scaled_online=True)


def untrained(
    encoder: Encoder, classes: NDArray[Any], *, scaled_online: bool = False
) -> TableModel:
    """An untrained model of given features.

    Parameters
    ----------
    encoder : Encoder
        How columns become features.
    classes : array
        The grades from lowest to highest.
    scaled_online : bool
        Whether the scale is learned online.

    Returns
    -------
    TableModel
        It learns with the defaults of ``ordspan train``.
    """
    kind = ESTIMATORS[PA]
    parameters = learner_parameters(PA, {}) | {
        "classes": classes,
        "random_state": 0,
        "max_iter": 1,
        "shuffle": False,
    }
    training: dict[str, Any] = {
        "settings": {"files": [], "passes": 1, "scaled_on_the_way": scaled_online},
        "from": None,
        "rows": 0,
        "skipped": 0,
        "mae": [],
        "constant": None,
        "left_out": {},
        "notes": [],
    }
    return TableModel(
        encoder=encoder,
        kind=kind,
        parameters=parameters,
        classes_=np.asarray(classes),
        learner=make_learner(kind, parameters, encoder.recipe.n_features, len(classes)),
        training=training,
        calibration=Calibration(len(classes)),
    )
