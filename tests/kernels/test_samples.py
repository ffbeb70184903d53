"""Names of samples: where they come from, that they go along, and what they tell."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars
import pytest
from numpy.testing import assert_array_equal

from manykernels import KernelStack
from manykernels.kernels import KernelUnion, Linear
from manykernels.kernels.matching import TrainingSamples
from manykernels.kernels.stack import check_stack
from manykernels.kernels.transforms import Center, Spherical

NAMES = ["ann", "bob", "cid", "dot", "eve"]
FEATURES = np.random.default_rng(0).normal(size=(2, 5, 3))
GRAM = FEATURES @ FEATURES.mT


def named():
    return KernelStack.from_arrays(GRAM, ["a", "b"], row_samples=NAMES)


def frame(matrix, rows=NAMES, cols=NAMES):
    return pd.DataFrame(matrix, index=rows, columns=cols)


# -- where they come from --------------------------------------------------------------------


def test_one_list_names_both_sides_of_a_gram_stack():
    stack = named()
    assert stack.row_samples.tolist() == stack.col_samples.tolist() == NAMES
    assert KernelStack.from_arrays(GRAM, col_samples=NAMES).row_samples.tolist() == NAMES
    assert KernelStack.from_arrays(GRAM).row_samples is None


def test_a_block_has_two_lists():
    block = KernelStack.from_arrays(GRAM[:, :3], row_samples=NAMES[:3], col_samples=NAMES)
    assert block.row_samples.tolist() == NAMES[:3]
    assert block.col_samples.tolist() == NAMES
    assert KernelStack.from_arrays(GRAM[:, :3], row_samples=NAMES[:3]).col_samples is None


def test_numbers_and_dates_become_strings():
    stack = KernelStack.from_arrays(GRAM).with_samples(
        [3, 1, "x", 2.5, np.datetime64("2020-01-02")]
    )
    assert stack.row_samples.tolist() == ["3", "1", "x", "2.5", "2020-01-02"]
    assert not stack.row_samples.flags.writeable


def test_data_frames_name_their_samples():
    for arrays in (frame(GRAM[0]), [frame(GRAM[0]), GRAM[1]], {"a": frame(GRAM[0])}):
        stack = KernelStack.from_arrays(arrays)
        assert_array_equal(stack.data[0], GRAM[0])
        assert stack.gram
        assert stack.col_samples.tolist() == NAMES
    block = KernelStack.from_arrays([frame(GRAM[0]).iloc[:2]])
    assert block.row_samples.tolist() == NAMES[:2]
    assert block.col_samples.tolist() == NAMES


def test_a_data_frame_that_only_counts_names_nothing():
    counted = pd.DataFrame(GRAM[0])
    assert KernelStack.from_arrays(counted).row_samples is None
    part = KernelStack.from_arrays([counted.iloc[[3, 1]]])
    assert part.row_samples.tolist() == ["3", "1"]
    assert part.col_samples is None
    columns = polars.DataFrame(GRAM[0], schema=NAMES)
    assert KernelStack.from_arrays(columns).row_samples.tolist() == NAMES


def test_a_square_block_between_named_samples_is_no_gram_matrix():
    block = KernelStack.from_arrays(frame(GRAM[0], rows=list("vwxyz")))
    assert not block.gram
    message = r"names differ: 'v' against 'ann' at position 0\. .*gram=False"
    with pytest.raises(ValueError, match=message):
        KernelStack.from_arrays(frame(GRAM[0], rows=list("vwxyz")), gram=True)


def test_kernels_with_other_samples_are_refused():
    shuffled = frame(GRAM[1]).iloc[::-1]
    message = r"The rows of kernel 'two' have other names .*'eve' against 'ann' at position 0"
    with pytest.raises(ValueError, match=message):
        KernelStack.from_arrays({"one": frame(GRAM[0]), "two": shuffled}, gram=False)
    with pytest.raises(ValueError, match="The columns of kernel 'two' have other names"):
        KernelStack.from_arrays({"one": frame(GRAM[0]), "two": shuffled.T}, gram=False)


def test_a_union_takes_names_from_data_frames():
    table = pd.DataFrame(FEATURES[0], index=NAMES)
    union = KernelUnion([("linear", Linear())]).fit(table)
    assert union(table).col_samples.tolist() == NAMES
    block = union(table.iloc[:2], table)
    assert block.row_samples.tolist() == NAMES[:2]
    assert block.col_samples.tolist() == NAMES
    assert union(FEATURES[0]).row_samples is None


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (NAMES[:4], ValueError, "rows has 4 names for 5 samples"),
        ("abcde", TypeError, "one name per sample, got the string 'abcde'"),
    ],
)
def test_lists_that_are_no_names(names, error, message):
    with pytest.raises(error, match=message):
        KernelStack.from_arrays(GRAM, row_samples=names)


# -- they go along ---------------------------------------------------------------------------


def test_names_are_cut_along_with_the_samples(tmp_path):
    stack, every = named(), np.array(NAMES)
    rows, cols = [4, 0, 4], [1, 2]
    stack.save(tmp_path / "stack.npz")
    for part, r, c in [
        (stack[rows], rows, slice(None)),
        (stack[rows, cols], rows, cols),
        (stack[np.ix_(rows, cols)], rows, cols),
        (stack[:, cols], slice(None), cols),
        (stack.rows(slice(1, 3), np.array([1])), slice(1, 3), slice(None)),
        (stack.select([1]), slice(None), slice(None)),
        (stack.with_features(np.ones((5, 1))), slice(None), slice(None)),
        (stack.materialized(), slice(None), slice(None)),
        (stack.materialized(tmp_path / "stack.npy"), slice(None), slice(None)),
        (check_stack(stack, psd="clip"), slice(None), slice(None)),
        (Spherical().fit_transform(stack), slice(None), slice(None)),
        (Center().fit_transform(stack), slice(None), slice(None)),
        (KernelStack.load(tmp_path / "stack.npz"), slice(None), slice(None)),
        (pickle.loads(pickle.dumps(stack)), slice(None), slice(None)),
        (copy.deepcopy(stack)[rows], rows, slice(None)),
    ]:
        assert_array_equal(part.row_samples, every[r])
        assert_array_equal(part.col_samples, every[c])
        assert not part.data.flags.writeable


def test_names_are_given_anew():
    renamed = named().with_samples(list("vwxyz"))
    assert renamed.col_samples.tolist() == list("vwxyz")
    assert named().with_samples(None).row_samples is None


# -- what they tell --------------------------------------------------------------------------


def test_columns_have_to_be_the_training_samples_in_order():
    stack = named()
    train, test = [3, 0], [1, 4]
    known = TrainingSamples.of(stack[np.ix_(train, train)])
    known.check_columns(stack[np.ix_(test, train)])
    known.check_columns(stack[np.ix_(train, train)])
    with pytest.raises(ValueError, match=r"'bob' against 'dot'.* Its rows are: pass the trans"):
        known.check_columns(stack[np.ix_(train, test)])
    with pytest.raises(ValueError, match=r"'ann' against 'dot' at position 0\..*another order"):
        known.check_columns(stack[np.ix_(test, train[::-1])])
    with pytest.raises(ValueError, match="one column per training sample"):
        known.check_columns(stack[np.ix_(test, [2, 4])])


def test_without_names_self_similarities_tell():
    stack = KernelStack.from_arrays(GRAM, ["a", "b"])
    train, test = [3, 0], [1, 4]
    known = TrainingSamples.of(stack[np.ix_(train, train)])
    known.check_columns(stack[np.ix_(test, train)])
    with pytest.raises(ValueError, match=r"self-similarities in kernel 'a', .*transposed"):
        known.check_columns(stack[np.ix_(train, test)])
    with pytest.raises(ValueError, match=r"Gram matrix of other samples .* kernel 'a' differ"):
        known.check_columns(stack[np.ix_(test, test)])


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_diagonals_that_are_not_finite_are_left_to_the_check(value):
    broken = GRAM.copy()
    broken[0, 1, 1] = value
    known = TrainingSamples.of(KernelStack(broken, ["a", "b"], gram=True))
    assert known.names is None


def test_where_nothing_tells_nothing_is_refused():
    stack = Spherical().fit_transform(KernelStack.from_arrays(GRAM))
    known = TrainingSamples.of(stack[np.ix_([3, 0], [3, 0])])
    assert known.diagonal is None
    known.check_columns(stack[np.ix_([3, 0], [1, 4])])
    plain = KernelStack.from_arrays(GRAM[:, :2, 3:], gram=False)
    TrainingSamples.of(KernelStack.from_arrays(GRAM[:, :2, :2])).check_columns(plain)


def test_self_similarities_of_the_columns_alone_do_not_show_a_transposed_block():
    known = TrainingSamples.of(KernelStack.from_arrays(GRAM[:, :2, :2]))
    block = KernelStack.from_arrays(GRAM[:, :2, 3:], gram=False, col_diag=np.ones((2, 2)))
    assert block.row_diag is None
    known.check_columns(block)
