"""Finished cells are found again, and nothing else is taken for them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import FunctionTransformer

import manykernels
from manykernels import MKFDA, KernelStack, Views, compare
from manykernels.comparison.run import fingerprint
from manykernels.kernels import RBF, Linear
from tests.comparison.methods import ByColumn, Failing, labelled_table
from tests.problems import slow

METHODS = {"one": ByColumn(1), "bayes": GaussianNB()}


@pytest.fixture
def table():
    return labelled_table()


@pytest.fixture
def computed(monkeypatch):
    """Methods of the cells that were computed, and not found."""
    # The function of this name hides the module.
    module, seen = sys.modules["manykernels.comparison.run"], []
    original = module.measured

    def watched(*arguments, **options):
        seen.append(arguments[0])
        return original(*arguments, **options)

    monkeypatch.setattr(module, "measured", watched)
    return seen


def files(folder):
    return sorted(folder.glob("*.json"))


# -- the same call ---------------------------------------------------------------------------


def test_the_same_call_finds_everything(table, tmp_path, computed, capsys):
    first = compare(METHODS, *table, cv=3, path=tmp_path / "new" / "cells")
    assert len(computed) == 6
    again = compare(METHODS, *table, cv=3, path=tmp_path / "new" / "cells", verbose=True)
    assert len(computed) == 6
    assert again.cells == first.cells
    assert str(again) == str(first)
    assert capsys.readouterr().out == "[compare] 6 of 6 cells were finished before\n"


def test_a_cell_file_is_plain_json(table, tmp_path):
    result = compare({"bayes": GaussianNB()}, *table, cv=2, path=tmp_path)
    for file in files(tmp_path):
        content = json.loads(file.read_text(), parse_constant=pytest.fail)
        cell = result.cells["bayes", content["split"]]
        assert content["cell"]["scores"] == cell.scores
        assert content["method"] == "bayes"


@pytest.mark.slow
def test_more_methods_and_other_names_cost_only_what_is_new(table, tmp_path, computed):
    compare(METHODS, *table, cv=3, path=tmp_path)
    more = {"called otherwise": ByColumn(1), "new": ByColumn(0), "bayes": GaussianNB()}
    result = compare(more, *table, cv=3, path=tmp_path)
    assert [method.column for method in computed[6:]] == [0, 0, 0]
    expected = compare(more, *table, cv=3)
    np.testing.assert_array_equal(result.scores(), expected.scores())


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: {"methods": {"one": ByColumn(1, note="x"), "bayes": GaussianNB()}},
        *slow(
            lambda X, y: {
                "methods": {"one": ByColumn(1), "bayes": GaussianNB(var_smoothing=1e-8)}
            },
            lambda X, y: {"X": X + 1e-9},
            lambda X, y: {"X": pd.DataFrame(X).to_numpy(dtype=np.float32)},
            lambda X, y: {"y": y[::-1].copy()},
            lambda X, y: {"cv": 4},
            lambda X, y: {"scoring": "balanced_accuracy"},
            lambda X, y: {"scoring": ["accuracy", "balanced_accuracy"]},
        ),
    ],
)
def test_what_differs_is_computed(table, tmp_path, computed, change):
    X, y = table
    compare(METHODS, X, y, cv=3, path=tmp_path)
    arguments = {"methods": METHODS, "X": X, "y": y, "cv": 3, **change(X, y)}
    kept = files(tmp_path)
    result = compare(**arguments, path=tmp_path)
    assert len(computed) > 6
    assert set(kept) < set(files(tmp_path))
    np.testing.assert_array_equal(result.scores(), compare(**arguments).scores())


@pytest.mark.parametrize("package", [manykernels, *slow(sklearn)])
def test_cells_of_another_version_are_left_alone(table, tmp_path, computed, monkeypatch, package):
    compare(METHODS, *table, cv=3, path=tmp_path)
    monkeypatch.setattr(package, "__version__", "99.0")
    compare(METHODS, *table, cv=3, path=tmp_path)
    assert len(computed) == len(files(tmp_path)) == 12


def test_failed_cells_are_tried_again(table, tmp_path, computed):
    methods = {"fine": ByColumn(1), "fails": Failing(without=3)}
    for _ in range(2):
        with pytest.warns(FitFailedWarning):
            compare(methods, *table, cv=3, path=tmp_path)
    assert len(files(tmp_path)) == 5
    assert len(computed) == 7


def test_cells_without_one_of_the_scores_are_kept(table, tmp_path, computed):
    for _ in range(2):
        with pytest.warns(FitFailedWarning, match="no neg_log_loss"):
            result = compare(
                METHODS, *table, cv=2, scoring=["accuracy", "neg_log_loss"], path=tmp_path
            )
    assert len(computed) == 4
    assert "no neg_log_loss: AttributeError" in result.failures["one", 1]


# -- interruptions ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_an_interrupted_call_goes_on(table, tmp_path, n_jobs):
    bomb = tmp_path / "bomb"
    bomb.touch()
    methods = {"one": ByColumn(1), "armed": Armed(str(bomb))}
    with pytest.warns(RuntimeWarning, match="the same call continues from there"):
        partial = compare(methods, *table, cv=4, path=tmp_path / "cells", n_jobs=n_jobs)
    assert not partial.finished
    n_kept = len(files(tmp_path / "cells"))
    assert n_kept >= len(partial.cells) >= 1
    bomb.unlink()
    result = compare(methods, *table, cv=4, path=tmp_path / "cells", n_jobs=n_jobs)
    assert result.finished
    np.testing.assert_array_equal(result.scores(), compare(methods, *table, cv=4).scores())


class Armed(ByColumn):
    """Is interrupted on the splits that lack row 59 in training while a file exists."""

    def __init__(self, file="", column=1):
        super().__init__(column)
        self.file = file

    def fit(self, X, y):
        if os.path.exists(self.file) and 59 not in X[:, -1]:
            raise KeyboardInterrupt
        return super().fit(X, y)


SCRIPT = """
import sys, time
import numpy as np
sys.path.insert(0, {root!r})
from sklearn.naive_bayes import GaussianNB
from manykernels import compare
from tests.comparison.methods import ByColumn, labelled_table

class Slow(GaussianNB):
    def fit(self, X, y):
        time.sleep({seconds})
        return super().fit(X, y)

Slow.__module__ = "slow"
X, y = labelled_table()
methods = {{"slow": Slow(), "one": ByColumn(1, note={{"a", "b", "c"}})}}
result = compare(methods, X, y, cv=5, path={path!r})
print(repr(result.scores().tolist()))
"""


# Strings are hashed otherwise in every process: sets are in another order.
@pytest.mark.slow
def test_a_killed_process_loses_only_the_cell_it_was_at(tmp_path):
    root, cells = os.getcwd(), tmp_path / "cells"

    def command(seconds):
        script = SCRIPT.format(root=root, path=str(cells), seconds=seconds)
        return [sys.executable, "-c", script]

    with subprocess.Popen(command(0.3)) as process:
        until = time.monotonic() + 60
        while len(files(cells)) < 3 and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    before = {file: file.stat().st_mtime_ns for file in files(cells)}
    assert 3 <= len(before) < 10
    done = subprocess.run(command(0), capture_output=True, text=True, check=True)
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert len(files(cells)) == 10
    X, y = labelled_table()
    expected = compare({"slow": GaussianNB(), "one": ByColumn(1)}, X, y, cv=5)
    assert done.stdout.strip() == repr(expected.scores().tolist())


# -- damage ----------------------------------------------------------------------------------


def spoil(file, how):
    text = file.read_text()
    content = json.loads(text)
    if how == "cut":
        file.write_text(text[: len(text) // 2])
    elif how == "empty":
        file.write_text("")
    elif how == "binary":
        file.write_bytes(b"\xff\xfe\x00")
    elif how == "list":
        file.write_text("[]")
    elif how == "other key":
        file.write_text(json.dumps({**content, "key": "0"}))
    elif how == "no scores":
        content["cell"]["scores"] = {}
        file.write_text(json.dumps(content))
    elif how == "words":
        content["cell"]["scores"]["accuracy"] = "much"
        file.write_text(json.dumps(content))
    else:
        del content["cell"]["fit_time"]
        file.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "how", ["cut", "empty", "binary", "list", *slow("other key", "no scores", "words", "fields")]
)
def test_damaged_files_are_named_and_computed_again(table, tmp_path, computed, how):
    first = compare(METHODS, *table, cv=2, path=tmp_path)
    file = files(tmp_path)[0]
    spoil(file, how)
    with pytest.warns(RuntimeWarning, match=f"{re.escape(str(file))} is damaged .*again"):
        again = compare(METHODS, *table, cv=2, path=tmp_path)
    assert len(computed) == 5
    np.testing.assert_array_equal(first.scores(), again.scores())
    compare(METHODS, *table, cv=2, path=tmp_path)
    assert len(computed) == 5


def test_a_path_that_cannot_be_a_folder(table, tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ValueError, match="path must be a folder"):
        compare(METHODS, *table, path=file)


def test_splits_that_are_not_the_same_again_are_refused(table, tmp_path):
    unseeded = ShuffleSplit(3, random_state=np.random.RandomState(0))
    with pytest.raises(ValueError, match=r"different splits in every call.*random_state=0"):
        compare(METHODS, *table, cv=unseeded, path=tmp_path)
    seeded = ShuffleSplit(3, random_state=0)
    assert len(compare(METHODS, *table, cv=seeded, path=tmp_path).splits) == 3


def test_a_parameter_that_cannot_be_written_down(table, tmp_path):
    with (tmp_path / "open").open("w") as note:
        methods = {"open": ByColumn(note=Holder(note))}
        with pytest.raises(TypeError, match=r"'open' cannot be stored .*Do not pass path"):
            compare(methods, *table, cv=2, path=tmp_path / "cells")


class Holder:
    """Something that clone copies as it is."""

    def __init__(self, content):
        self.content = content

    def __deepcopy__(self, memo):
        return self


# -- fingerprints ----------------------------------------------------------------------------


def closing_over(number):
    return lambda x: x * number


X = np.arange(6.0).reshape(3, 2)
DIFFERENT = {
    "array": X,
    "other": X + 1,
    "reshaped": X.reshape(2, 3),
    "float32": X.astype(np.float32),
    "integers": X.astype(int),
    "empty": X[:0],
    "list": X.tolist(),
    "tuple": tuple(X.tolist()),
    "sparse": sparse.csr_array(X),
    "frame": pd.DataFrame(X),
    "named frame": pd.DataFrame(X, columns=["a", "b"]),
    "indexed frame": pd.DataFrame(X, index=[2, 1, 0]),
    "views": Views({"a": X, "b": X}),
    "other views": Views({"a": X, "c": X}),
    "stack": KernelStack.from_arrays({"a": X @ X.T}),
    "other stack": KernelStack.from_arrays({"b": X @ X.T}),
    "texts": np.array(["a", "bc"], dtype=object),
    "more texts": np.array(["ab", "c"], dtype=object),
    "one": 1,
    "true": True,
    "float": 1.0,
    "nan": np.nan,
    "none": None,
    "string": "1",
    "bytes": b"1",
    "set": {"a", "b"},
    "dict": {"a": 1, "b": 2},
    "dict in another order": {"b": 2, "a": 1},
    "twice": lambda x: 2 * x,
    "thrice": lambda x: 3 * x,
    "closure": closing_over(2),
    "other closure": closing_over(3),
    "estimator": MKFDA(RBF(gamma=1.0)),
    "other kernel": MKFDA(Linear()),
    "other width": MKFDA(RBF(gamma=2.0)),
    "other p": MKFDA(RBF(gamma=1.0), p=1),
    "several kernels": MKFDA([("a", RBF()), ("b", Linear())]),
    "function": FunctionTransformer(np.log),
    "other function": FunctionTransformer(np.exp),
    "method": FunctionTransformer(Views.joined),
    "seeded": np.random.RandomState(0),
    "seeded otherwise": np.random.RandomState(1),
    "class": MKFDA,
    "path": os.path.join,
}


def test_what_differs_has_another_fingerprint():
    found = {name: fingerprint(value) for name, value in DIFFERENT.items()}
    assert len(set(found.values())) == len(DIFFERENT)


def test_the_same_again_has_the_same_fingerprint():
    assert fingerprint(X) == fingerprint(X.copy()) == fingerprint(np.asfortranarray(X))
    assert fingerprint(closing_over(2)) == fingerprint(closing_over(2))
    assert fingerprint(MKFDA(RBF())) == fingerprint(sklearn.clone(MKFDA(RBF())))
    shared = (1.5, "a")
    assert fingerprint([shared, shared]) == fingerprint([(1.5, "a"), (1.5, str(b"a", "ascii"))])
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    again = frame.copy()
    again["a"] = again["a"] + 0
    assert fingerprint(frame) == fingerprint(again)
    assert fingerprint(np.float64(2.0)) == fingerprint(2.0)
    assert fingerprint({"b", "a"}) == fingerprint({"a", "b"})
    assert fingerprint(sparse.csr_array(X)) == fingerprint(sparse.csc_array(X))
    loop = []
    loop.append(loop)
    assert fingerprint(loop) == fingerprint(loop)
