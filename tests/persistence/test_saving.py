"""What is refused when a model is saved, by name, and that files are replaced whole or not."""

import builtins
import errno
import os
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import manykernels as mk
from manykernels import ModelFileError
from manykernels.kernels import RBF, Kernel, Linear
from manykernels.utils import files
from tests.estimators.registry import Y
from tests.persistence.cases import TRAIN, N

LABELS = Y[:N]


def similarity(X, Z):
    return np.asarray(X) @ np.asarray(Z).T


class Scaler(StandardScaler):
    """A transformer that the package does not know."""


class Twice(Linear):
    """A kernel that the package does not know."""

    def _evaluate(self, X, Y):
        return 2.0 * super()._evaluate(X, Y)


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ({"plain": RBF(), "mine": similarity}, "kernel 'mine' has the function similarity"),
        ([similarity], "kernel 'callablekernel' has the function similarity"),
        ({"mine": lambda X, Z: similarity(X, Z)}, "kernel 'mine' .*<lambda>"),
        ({"mine": partial(similarity)}, r"kernel 'mine' has the function functools.partial"),
        (
            {"mine": RBF().after(FunctionTransformer(lambda X: X + 1))},
            "kernel 'mine' has the function .*<lambda>",
        ),
        ({"mine": Linear(columns=lambda X: [0])}, "kernel 'mine' has the function .*<lambda>"),
    ],
)
def test_functions_are_refused_with_the_name_of_the_kernel(kernels, message, tmp_path):
    model = mk.MKSVC(kernels).fit(TRAIN, LABELS)
    with pytest.raises(ModelFileError, match=f"MKSVC cannot be saved: {message}.*trusted="):
        mk.save(model, tmp_path / "model.skops")
    assert os.listdir(tmp_path) == []


def test_classes_of_others_are_stored_and_loaded_on_request(tmp_path):
    path = tmp_path / "model.skops"
    kernels = {"scaled": RBF().after(Scaler()), "twice": Twice()}
    model = mk.MKSVC(kernels).fit(TRAIN, LABELS)
    mk.save(model, path)
    names = [f"{__name__}.Scaler", f"{__name__}.Twice"]
    with pytest.raises(ModelFileError, match="not trusted: ") as refused:
        mk.load(path)
    assert all(name in str(refused.value) for name in names)
    with pytest.raises(ModelFileError, match=r"not trusted: .*Scaler"):
        mk.load(path, trusted=names[1:])
    found = mk.load(path, trusted=names).decision_function(TRAIN)
    np.testing.assert_array_equal(found, model.decision_function(TRAIN))


def test_classes_that_cannot_be_found_again_are_refused(tmp_path):
    class Local(Kernel):
        def _evaluate(self, X, Y):
            return X @ (X if Y is None else Y).T

    model = mk.MKSVC({"local": Local()}).fit(TRAIN, LABELS)
    with pytest.raises(ModelFileError, match=r"kernel 'local' is of the class .*Local, which"):
        mk.save(model, tmp_path / "model.skops")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"when": pd.date_range("2020", periods=N, tz="UTC")}, "column 'when' .*UTC"),
        ({"span": pd.period_range("2020", periods=N)}, "column 'span' .*period"),
        pytest.param(
            {"thing": [{1: 2}] * N}, r"column 'thing' .*object \(dict\)", marks=pytest.mark.slow
        ),
    ],
)
def test_columns_that_files_do_not_hold_are_named(frame, message, tmp_path):
    table = pd.DataFrame({"a": TRAIN[:, 0], **frame})
    model = mk.MKFDA(RBF(columns=["a"])).fit(table, LABELS)
    with pytest.raises(ModelFileError, match=message):
        mk.save(model, tmp_path / "model.skops")


def test_only_fitted_estimators_are_saved(tmp_path):
    path = tmp_path / "model.skops"
    with pytest.raises(NotFittedError):
        mk.save(mk.MKSVC(), path)
    for other in (TRAIN, "model", StandardScaler().fit(TRAIN), mk.MKSVC):
        with pytest.raises(TypeError, match="An estimator of manykernels can be saved"):
            mk.save(other, path)
    search = GridSearchCV(mk.MKSVC(), {"C": [1.0]}, cv=2).fit(TRAIN, LABELS)
    with pytest.raises(TypeError, match="Save its best_estimator_"):
        mk.save(search, path)
    mk.save(search.best_estimator_, path)
    assert mk.load(path).C == 1.0


@pytest.fixture(scope="module")
def model():
    return mk.MKSVC(RBF()).fit(TRAIN, LABELS)


def test_paths(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mk.save(model, "model.skops")
    assert repr(mk.load(tmp_path / "model.skops")) == repr(mk.load("model.skops")) == repr(model)
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere"):
        mk.save(model, tmp_path / "nowhere" / "model.skops")
    with pytest.raises(FileNotFoundError):
        mk.load("other.skops")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "full")])
def test_what_interrupts_a_save_leaves_the_old_file(model, tmp_path, monkeypatch, error):
    path = tmp_path / "model.skops"
    path.write_bytes(b"old")

    def fail(*arguments):
        raise error

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises((KeyboardInterrupt, OSError)):
        mk.save(model, path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.skops"]


@pytest.mark.parametrize("function", [lambda path: mk.load(path), lambda path: mk.save(1, path)])
def test_without_skops_the_message_says_what_to_install(function, tmp_path, monkeypatch):
    original = builtins.__import__

    def without_skops(name, *arguments):
        if name.partition(".")[0] == "skops":
            raise ImportError(name)
        return original(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_skops)
    with pytest.raises(ImportError, match=r'pip install "manykernels\[io\]"'):
        function(tmp_path / "model.skops")
