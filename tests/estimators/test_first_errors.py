"""Errors that newcomers meet in Python say what to do."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.model_selection import cross_val_score

from manykernels import MKFDA, MKSVR, MKSVRCV, MKRidge, Views, view_importance

RNG = np.random.default_rng(0)
N = 20
X, CLASSES = RNG.normal(size=(N, 2)), np.arange(N) % 2
VIEWS = {"a": X, "b": X[:, :1]}


@pytest.mark.parametrize("model", [MKSVR(), MKSVRCV(ps=[1.0], Cs=[1.0])], ids=repr)
def test_several_targets_of_machines(model):
    name = type(model).__name__
    with pytest.raises(
        ValueError, match=f"y has 2 columns, and {name} learns one target: use MKR"
    ):
        model.fit(X, X)


@pytest.mark.parametrize("model", [MKFDA(), MKRidge(), MKSVR()], ids=repr)
def test_no_table(model):
    sentence = "X is None: pass a table with a row per sample"
    with pytest.raises(TypeError, match=sentence):
        model.fit(None, CLASSES)
    with pytest.raises(TypeError, match=sentence):
        model.fit(X, CLASSES).predict(None)
    with pytest.raises(TypeError, match="view 'b' is None: pass a table"):
        model.fit({"a": X, "b": None}, CLASSES)


def test_columns_of_one_name():
    table = pd.DataFrame(X, columns=["dose", "dose"])
    with pytest.raises(ValueError, match="several columns are called 'dose': give them different"):
        MKFDA().fit(table, CLASSES)


def test_an_indefinite_kernel_in_a_dict():
    similar = np.where(np.eye(N), 0.0, 1.0)
    kernels = {"good": np.eye(N), "similar": similar}
    with pytest.raises(ValueError, match=r"Kernel 'similar' is not positive semi-definite.*clip"):
        MKFDA("precomputed").fit(kernels, CLASSES)


def test_a_dict_in_functions_of_scikit_learn():
    """They split X by rows and refuse a dict; the documentation has their sentence."""
    sentence = "Found input variables with inconsistent numbers of samples"
    with pytest.raises(ValueError, match=rf"{sentence}: \[2, {N}\]"):
        cross_val_score(MKFDA(p=2), VIEWS, CLASSES)
    page = Path(__file__).parents[2] / "docs" / "how_to" / "troubleshooting.md"
    answer = (
        page.read_text(encoding="utf-8").partition(f'### "{sentence}')[2].partition("\n### ")[0]
    )
    assert "Views(" in answer
    assert len(cross_val_score(MKFDA(p=2), Views(VIEWS), CLASSES, cv=2, error_score="raise")) == 2


def test_groups_by_the_names_of_views():
    with pytest.raises(TypeError, match=r"pass the kernels of views as views=\.\.\."):
        view_importance(MKFDA(p=2), VIEWS, CLASSES, groups={"both": ["a", "b"]})
    with pytest.raises(ValueError, match="groups has 2 labels, but X has 20 rows"):
        view_importance(MKFDA(p=2), VIEWS, CLASSES, groups=["a", "b"])


def test_ids_in_a_column_of_polars():
    table = polars.DataFrame({"id": [f"s{i}" for i in range(N)], "x": X[:, 0]})
    sentence = r"If it names the samples, make it the index.*X\.to_pandas\(\)\.set_index\('id'\)"
    with pytest.raises(ValueError, match=sentence):
        MKFDA().fit(table, CLASSES)
