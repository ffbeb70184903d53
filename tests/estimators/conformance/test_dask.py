"""Rows of dask: every estimator predicts them block by block, and says if it cannot learn so."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import manykernels as mk
from manykernels.baselines import Average
from manykernels.kernels import RBF
from tests.estimators.registry import (
    METHODS,
    N_TEST,
    SHARED_TARGETS,
    TARGETS_OF,
    X_TEST,
    Entry,
    Form,
    X,
    every_variant_on_positive_kernels,
    parametrized,
)
from tests.problems import slow

KERNELS = [("shape", RBF(0.3).on(slice(0, 3))), ("noise", RBF(1.0).on([3, 4]))]
FRAME, NEW_FRAME = (pd.DataFrame(table, columns=list("abcde")) for table in (X, X_TEST))
ARRAYS = {
    "chunks": da.from_array(X_TEST, chunks=(5, 2)),
    "an empty chunk": da.from_array(X_TEST, chunks=((0, 3, 0, 14), (5,))),
}
FRAMES = {"partitions": dd.from_pandas(NEW_FRAME, npartitions=4)}
READ = []


def noted(block):
    """A chunk of a table; chunks that are read are noted by their length."""
    READ.append(len(block))
    return block


def assert_answers(model, new, containers):
    """Methods of `model` say the same of rows of dask as of rows in memory."""
    for method in METHODS:
        if not hasattr(model, method):
            continue
        expected = np.asarray(getattr(model, method)(new))
        for name, lazy in containers.items():
            answer = getattr(model, method)(lazy)
            if method != "evaluations":
                assert isinstance(answer, da.Array), (method, name)
            found = np.asarray(answer)
            assert found.shape == expected.shape, (method, name)
            if expected.dtype.kind in "biuf":
                np.testing.assert_allclose(
                    found, expected, rtol=1e-10, atol=1e-10, err_msg=f"{method}, {name}"
                )
            else:
                np.testing.assert_array_equal(found, expected, f"{method}, {name}")


@every_variant_on_positive_kernels
def test_predictions_are_those_of_rows_in_memory(entry):
    model = entry.fit(Form("table", KERNELS, X, X_TEST))
    assert_answers(model, X_TEST, ARRAYS)
    model = entry.fit(Form("table", KERNELS, FRAME, NEW_FRAME))
    assert_answers(model, NEW_FRAME, FRAMES)


VIEWS = {"left": FRAME[["a", "b"]], "right": FRAME[["c", "d", "e"]]}
NEW_VIEWS = {"left": NEW_FRAME[["a", "b"]], "right": NEW_FRAME[["c", "d", "e"]]}
SOME = [
    Entry(mk.MKFDA, "three"),
    Entry(mk.MKOneClassSVM, "none", {"nu": 0.3}),
    Entry(mk.MKSVCCV, "three", {"ps": [2], "Cs": [1.0], "cv": 2}),
    Entry(mk.LocalizedSVC, "three", {"tol": 0.1, "early_stopping": 0}),
    Entry(mk.ConvexLocalizedSVC, "three", {"sharpness": 2.0}),
    Entry(Average, "three"),
]


@parametrized(SOME, lambda entry: entry.kind is not mk.MKFDA)
def test_predictions_of_several_views(entry):
    model = entry.make(RBF()).fit(VIEWS, entry.y)
    frames = {name: dd.from_pandas(one, npartitions=4) for name, one in NEW_VIEWS.items()}
    mixed = {"left": frames["left"], "right": NEW_VIEWS["right"]}
    assert_answers(model, NEW_VIEWS, {"frames": frames, "one in memory": mixed})


def test_predictions_from_kernel_matrices():
    training = {name: kernel.fit(X)(X) for name, kernel in KERNELS}
    new = {name: kernel.fit(X)(X_TEST, X) for name, kernel in KERNELS}
    lazy = {name: da.from_array(one, chunks=(5, 7)) for name, one in new.items()}
    for entry in SOME[:3]:
        model = entry.make("precomputed").fit(training, entry.y)
        assert_answers(model, new, {"matrices": lazy})
    with pytest.raises(TypeError, match=r"MKSVCCV needs the kernel matrices .*compute\(\)"):
        model.fit({name: da.asarray(one) for name, one in training.items()}, entry.y)


@pytest.mark.parametrize("target", ["two", *slow("three", "values", "counts")])
def test_scores_are_those_of_rows_in_memory(target):
    kind = {"values": mk.MKRidge, "counts": mk.MKGLM}.get(target, mk.MKSVC)
    entry = Entry(kind, target)
    y, weight = pd.Series(entry.y_of(X_TEST)), np.linspace(0.1, 2.0, N_TEST)
    for model in (entry.make(KERNELS).fit(FRAME, entry.y), Average(KERNELS, estimator=kind())):
        model.fit(FRAME, entry.y)
        for lazy_y in (dd.from_pandas(y, npartitions=4), dd.from_pandas(y, npartitions=2), y):
            for weights in (None, weight):
                found = model.score(FRAMES["partitions"], lazy_y, weights)
                assert found == pytest.approx(model.score(NEW_FRAME, y, weights), rel=1e-10)


def test_scores_of_survival_models():
    model = mk.MKCox(KERNELS).fit(FRAME, SHARED_TARGETS["survival"])
    y = pd.DataFrame(TARGETS_OF["survival"](X_TEST))
    expected = model.score(NEW_FRAME, y)
    for lazy in (y, dd.from_pandas(y, npartitions=4)):
        assert model.score(FRAMES["partitions"], lazy) == expected
        assert model.score(NEW_FRAME, lazy) == expected


def test_no_more_than_a_chunk_is_read_at_once():
    model = mk.MKOneClassSVM(KERNELS, nu=0.3).fit(X)
    rows = da.from_array(X_TEST, chunks=(4, 5)).map_blocks(noted, meta=np.empty((0, 5)))
    READ.clear()
    answer = model.predict(rows)
    assert READ == [4]  # one chunk, to know the kind of the answers
    READ.clear()
    answer[:4].compute()
    assert READ == [4]


@every_variant_on_positive_kernels
def test_learning_from_rows_of_dask_is_refused_with_a_way_out(entry):
    model = entry.make(KERNELS)
    message = f"not in memory, where {entry.name} computes .*take such X"
    for rows in (da.from_array(X, chunks=(20, 5)), dd.from_pandas(FRAME, npartitions=2)):
        with pytest.raises(TypeError, match=message):
            model.fit(rows, entry.y)
