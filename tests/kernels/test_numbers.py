"""Real numbers only, and errors that say where others are."""

import numpy as np
import pandas as pd
import polars
import pytest
from numpy.testing import assert_array_equal

from manykernels import MKFDA, MKSVC, KernelStack
from manykernels.kernels import RBF, KernelUnion, Views

MASKED = np.ma.masked_array(np.eye(3), mask=np.eye(3)[::-1] == 1)
NO_NUMBERS = {
    "complex": (np.eye(3) * 1j, r"holds complex numbers \(complex128\)"),
    "dates": (np.zeros((3, 3), dtype="M8[D]"), "holds dates"),
    "times": (np.zeros((3, 3), dtype="m8[s]"), "holds differences of times"),
    "masked": (MASKED, "has a masked entry at 0, 2"),
    "words": (np.full((3, 3), "word"), "could not convert string to float"),
}


@pytest.mark.parametrize(("array", "message"), NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_matrices_hold_real_numbers(array, message):
    with pytest.raises(ValueError, match=f"Kernel 'bad' .*{message}"):
        KernelStack.from_arrays({"good": np.eye(3), "bad": array})
    with pytest.raises(ValueError, match=message):
        KernelStack.from_arrays(array)
    with pytest.raises(ValueError, match=message):
        MKFDA(kernels="precomputed").fit(array, [0, 1, 1])
    with pytest.raises(ValueError, match=message):
        MKFDA().fit(array, [0, 1, 1])
    with pytest.raises(ValueError, match=message):
        RBF(1.0)(array)


def test_a_stack_of_masked_matrices_is_refused():
    three = np.ma.stack([np.ma.masked_array(np.eye(3)), MASKED])
    with pytest.raises(ValueError, match="Kernel 'kernel1' has a masked entry at 0, 2"):
        KernelStack.from_arrays(three)
    with pytest.raises(ValueError, match="Kernel 'kernel1' has a masked entry at 0, 2"):
        MKSVC(kernels="precomputed").fit(np.ma.stack([three[0], MASKED], axis=-1), [0, 1, 1])


def test_an_empty_mask_has_no_effect():
    stack = KernelStack.from_arrays(np.ma.masked_array(np.eye(3)))
    assert_array_equal(stack.data[0], np.eye(3))


# -- data frames -------------------------------------------------------------------------------

TABLE = {"size": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]}
DATED = {"size": [1.0, 2.0, 3.0], "day": np.array(["2020", "2021", "2022"], dtype="M8[D]")}


@pytest.mark.parametrize("frame", [pd.DataFrame, polars.DataFrame])
def test_the_column_without_numbers_is_named(frame):
    message = r"column 'colour' .*does not hold numbers only: could not convert string to float"
    with pytest.raises(ValueError, match=rf"kernel 'linear'.*{message}"):
        MKSVC("linear").fit(frame(TABLE), [0, 1, 1])
    with pytest.raises(ValueError, match=message):
        RBF(1.0)(frame(TABLE))
    with pytest.raises(ValueError, match=r"column 'day' .*dates"):
        RBF(1.0)(frame(DATED))
    assert_array_equal(RBF(1.0).on(["size"])(frame(TABLE)), RBF(1.0)(frame({"size": [1, 2, 3]})))


def test_a_kernel_matrix_with_words_names_kernel_and_column():
    mixed = pd.DataFrame({"a": [1.0, 0.0], "b": ["x", 1.0]}, index=["a", "b"])
    with pytest.raises(ValueError, match=r"Kernel 'one': column 'b' .*does not hold numbers"):
        KernelStack.from_arrays({"one": mixed})
    with pytest.raises(ValueError, match=r"X: column 'b' .*does not hold numbers"):
        MKSVC(kernels="precomputed").fit(mixed, [0, 1])


def test_whole_and_truth_valued_columns_are_numbers():
    table = pd.DataFrame({"n": [1, 2], "b": [True, False], "o": np.array([1, 0.5], dtype=object)})
    assert_array_equal(RBF(1.0)(table), RBF(1.0)([[1, 1, 1], [2, 0, 0.5]]))


# -- other shapes of input -----------------------------------------------------------------------


def test_named_matrices(tmp_path):
    matrices = {"one": np.eye(3), "two": np.ones((3, 3))}
    np.savez(tmp_path / "kernels.npz", **matrices)
    stacks = [KernelStack.from_arrays(matrices)]
    with np.load(tmp_path / "kernels.npz") as file:
        stacks.append(KernelStack.from_arrays(file))
    for stack in stacks:
        assert stack.names == ["one", "two"]
        assert_array_equal(stack.data, [np.eye(3), np.ones((3, 3))])
    with pytest.raises(ValueError, match="keys of a dict are the names"):
        KernelStack.from_arrays(matrices, names=["a", "b"])
    with pytest.raises(ValueError, match="at least one kernel"):
        KernelStack.from_arrays({})
    with pytest.raises(TypeError, match="must be strings, got 1"):
        KernelStack.from_arrays({1: np.eye(3)})


@pytest.mark.parametrize("arrays", [None, 3.0, "kernels.npz"])
def test_what_holds_no_matrices(arrays):
    with pytest.raises(TypeError, match="Kernel matrices must be a list, a dict or an array"):
        KernelStack.from_arrays(arrays)


@pytest.mark.parametrize("views", [[0], [np.eye(3)], np.eye(3), None, "ab"])
def test_views_come_by_name(views):
    with pytest.raises(TypeError, match="a dict of tables by the names of the views"):
        Views(views)


STACK = KernelStack.from_arrays({"a": np.eye(3), "b": np.ones((3, 3)), "c": 2 * np.eye(3)})


@pytest.mark.parametrize(
    "columns", [None, 1.0, np.ones(3), np.ones((2, 1)), [["x"]] * 3, np.ones((3, 1, 1)), 1j]
)
def test_products_need_a_table(columns):
    streamed = KernelUnion([("rbf", RBF(1.0))]).fit(np.eye(3))
    message = r"one row per column of the kernels, 3; got .* of shape"
    with pytest.raises(ValueError, match=message):
        STACK.apply(columns)
    with pytest.raises(ValueError, match=message):
        STACK.apply_combined([1.0, 1.0, 1.0], columns)
    with pytest.raises(ValueError, match=message):
        streamed(np.eye(3)).apply(columns)


def test_tables_of_whole_numbers_are_tables():
    assert_array_equal(STACK.apply([[1], [2], [3]])[2], [[2], [4], [6]])


@pytest.mark.parametrize(
    ("kernels", "names"),
    [("b", "b"), (["c", "a"], "ca"), (("a",), "a"), (np.array(["b", "c"]), "bc"), (1, "b")],
)
def test_kernels_are_selected_by_name(kernels, names):
    part = STACK.select(kernels)
    assert part.names == list(names)
    assert_array_equal(part.data, STACK.data[["abc".index(name) for name in names]])


@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        ("d", ValueError, "There is no kernel 'd', only a, b, c"),
        (["a", "d"], ValueError, "There is no kernel 'd', only a, b, c"),
        (7, IndexError, "7 selects none of the 3 kernels"),
        (0.5, IndexError, "0.5 selects none of the 3 kernels"),
        ([True], IndexError, "selects none of the 3 kernels"),
        ([], ValueError, "selects no kernel of a, b, c"),
        (None, ValueError, "None selects no kernel"),
        ([False] * 3, ValueError, "selects no kernel"),
    ],
)
def test_kernels_that_do_not_exist(kernels, error, message):
    with pytest.raises(error, match=message):
        STACK.select(kernels)


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf])
def test_weights_are_finite(weight):
    message = f"Weights must be finite, but that of kernel 'b' is {weight}"
    with pytest.raises(ValueError, match=message):
        STACK.combine([1.0, weight, 1.0])
    with pytest.raises(ValueError, match=message):
        STACK.apply_combined([1.0, weight, 1.0], np.ones((3, 1)))
