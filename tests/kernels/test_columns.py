"""Choosing columns: one vocabulary for every container."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_selector

from manykernels.kernels import RBF, Intersection, Linear

VALUES = np.random.default_rng(0).gamma(1.0, size=(6, 4))
NAMES = ["a", "b", "c", "d"]
CONTAINERS = {
    "list": lambda: VALUES.tolist(),
    "numpy": lambda: VALUES,
    "pandas": lambda: pd.DataFrame(VALUES, columns=NAMES),
    "polars": lambda: pl.DataFrame(VALUES, schema=NAMES),
    "csr": lambda: sparse.csr_array(VALUES),
    "csc": lambda: sparse.csc_matrix(VALUES),
    "coo": lambda: sparse.coo_array(VALUES),
}
FRAMES = ["pandas", "polars"]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    "columns",
    [[1, 3], (1, 3), np.array([1, 3]), slice(1, None, 2), [False, True, False, True], [-3, -1]],
    ids=repr,
)
def test_positions_on_every_container(container, columns):
    X = CONTAINERS[container]()
    kernel = RBF(gamma="auto").on(columns).fit(X)
    np.testing.assert_allclose(kernel(X), RBF(gamma=0.5)(VALUES[:, [1, 3]]), rtol=1e-12)


@pytest.mark.parametrize("container", FRAMES)
@pytest.mark.parametrize(
    ("columns", "expected"),
    [("b", [1]), (["d", "a"], [3, 0]), (np.array(["d", "a"]), [3, 0]), (slice("b", "c"), [1, 2])],
    ids=repr,
)
def test_names_on_dataframes(container, columns, expected):
    X = CONTAINERS[container]()
    assert_array_equal(Linear().on(columns).fit(X)(X), Linear()(VALUES[:, expected]))


@pytest.mark.parametrize("container", CONTAINERS)
def test_open_slices(container):
    X = CONTAINERS[container]()
    for columns in (slice(None), slice(None, None, 2), slice(None, -1)):
        expected = Linear()(VALUES[:, columns])
        np.testing.assert_allclose(Linear().on(columns)(X), expected, rtol=1e-12)


def test_one_position_is_one_column():
    assert_array_equal(Linear().on(2)(VALUES), Linear()(VALUES[:, [2]]))


@pytest.mark.parametrize("container", FRAMES)
def test_names_find_their_column_in_a_reordered_frame(container):
    X = CONTAINERS[container]()
    kernel = Linear().on(["a", "b"]).fit(X)
    assert_array_equal(kernel(X[["d", "b", "a"]]), kernel(X))


def test_names_choose_numbers_from_a_mixed_frame():
    X = pd.DataFrame({"label": list("uvw"), "size": [1.0, 2.0, 3.0]})
    assert_array_equal(Linear().on("size").fit(X)(X)[2], [3.0, 6.0, 9.0])


def test_callable_is_asked_once_on_the_training_rows():
    X = pd.DataFrame({"label": list("uvw"), "size": [1.0, 2.0, 3.0]})
    kernel = Linear().on(make_column_selector(dtype_include="number")).fit(X)
    assert kernel.columns_ == ["size"]
    assert_array_equal(kernel(X.astype({"size": object}), X)[2], [3.0, 6.0, 9.0])


def test_callable_works_before_fit():
    assert_array_equal(Linear().on(lambda X: [0])(VALUES), Linear()(VALUES[:, :1]))


def test_a_combined_kernel_selects_before_its_parts():
    X = CONTAINERS["pandas"]()
    kernel = (Linear().on("c") + Intersection()).on(["b", "c"]).fit(X)
    expected = Linear()(VALUES[:, [2]]) + Intersection()(VALUES[:, [1, 2]])
    assert_array_equal(kernel(X), expected)


@pytest.mark.parametrize(
    ("container", "columns", "message"),
    [
        ("pandas", "z", r"Linear: .*'z'.* X has the columns 'a', 'b', 'c', 'd'"),
        ("polars", ["a", "z"], r"Linear: .*'z'.* X has the columns 'a', 'b', 'c', 'd'"),
        ("pandas", slice("a", "z"), r"Linear: .*'z'.* X has the columns 'a'"),
        ("numpy", [0, 9], r"Linear: columns=\[0, 9\].* X has columns 0 to 3"),
        ("numpy", "a", "Linear: .*only supported for dataframes.*no column names"),
        ("numpy", [True, False], r"Linear: columns=\[True, False\]"),
        ("numpy", 1.5, "Linear: columns=1.5 cannot be selected"),
        ("numpy", [], "Linear: Found array with 0 feature"),
        ("csr", [4], r"Linear: columns=\[4\].* X has columns 0 to 3"),
    ],
)
def test_unknown_columns_are_named_with_those_that_exist(container, columns, message):
    X = CONTAINERS[container]()
    with pytest.raises(ValueError, match=message):
        Linear().on(columns).fit(X)
    with pytest.raises(ValueError, match=message):
        Linear().on(columns)(X)


def test_columns_of_a_vector_are_refused():
    with pytest.raises(ValueError, match=r"Linear: .*two-dimensional X, got shape \(3,\)"):
        Linear().on(0)([1.0, 2.0, 3.0])


def test_long_list_of_names_is_cut():
    X = pd.DataFrame(np.ones((2, 50)), columns=[f"x{j}" for j in range(50)])
    with pytest.raises(ValueError, match=r"'x19', …\.$"):
        Linear().on("z").fit(X)


@pytest.mark.parametrize("container", FRAMES)
def test_lists_of_names_are_not_looked_up_one_by_one(container, monkeypatch):
    """Tens of thousands of them would take minutes."""
    monkeypatch.setattr("manykernels.kernels.tables.get_column_indices", None)
    X = CONTAINERS[container]()
    assert_array_equal(Linear().on(["d", "a"])(X), Linear()(VALUES[:, [3, 0]]))


def test_names_that_stand_twice_are_refused():
    X = pd.DataFrame(VALUES, columns=["a", "b", "b", "d"])
    with pytest.raises(ValueError, match=r"columns=\['b'\] cannot be selected"):
        Linear().on(["b"])(X)


def test_lists_of_columns_are_copied_when_kernels_are_cloned():
    names = ["a", "b"]
    kernel = RBF(2.0, width=3.0).on(names)
    copy = clone(kernel.fit(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]})))
    assert copy.get_params() == kernel.get_params()
    assert copy.columns is not kernel.columns
    assert not hasattr(copy, "gamma_")
    assert kernel.columns == names
