"""KernelStack: storage, slicing, sums and products, files."""

import copy
import pickle

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, KFold

from manykernels.kernels import KernelStack
from manykernels.kernels.stack import check_stack
from manykernels.kernels.transforms import Center, Multiplicative, Spherical, UnitTrace
from tests.problems import slow

N_ROWS = 9
NAMES = ["a", "b", "c"]


def gram_data(n_kernels=3, n_rows=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_kernels, n_rows, 4)) + 0.5
    return features @ features.mT


def chained(*steps):
    def transform(stack):
        for step in steps:
            stack = step().fit_transform(stack)
        return stack

    return transform


TRANSFORMS = {
    "none": chained(),
    "scaled": chained(UnitTrace),
    "centred": chained(Center),
    "spherical": chained(Spherical),
    "spherical-centred": chained(Spherical, Center),
    "centred-scaled": chained(Center, Multiplicative),
    "centred-spherical": chained(Center, Spherical),
    "spherical-centred-scaled": chained(Spherical, Center, UnitTrace),
}


@pytest.fixture
def data():
    return gram_data()


@pytest.fixture
def plain(data):
    return KernelStack.from_arrays(data, NAMES)


@pytest.fixture(params=TRANSFORMS)
def any_stack(request, plain):
    return TRANSFORMS[request.param](plain)


def dense(stack):
    """The kernels as an array (n_kernels, rows, cols), each by the formula (*) of the module."""
    values = stack.data * stack._scale[:, None, None]
    if stack._rows.factor is not None:
        values = values * stack._rows.factor[:, :, None] * stack._cols.factor[:, None, :]
    if stack._rows.offset is not None:
        values = values - stack._rows.offset[:, :, None] - stack._cols.offset[:, None, :]
    return values


# -- making one ------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [list, np.asarray, tuple, lambda data: data.tolist()])
def test_from_arrays_takes_lists_and_storage_order(data, convert):
    stack = KernelStack.from_arrays(convert(data))
    assert_array_equal(stack.data, data)
    assert stack.names == ["kernel0", "kernel1", "kernel2"]
    assert stack.gram
    assert stack.checked


def test_one_matrix_is_a_stack_of_one(data):
    stack = KernelStack.from_arrays(data[0])
    assert stack.shape == (N_ROWS, N_ROWS, 1)
    assert_array_equal(stack.kernel(0), data[0])


@pytest.mark.parametrize("dtype", [">f4", ">f8", np.float16, np.int64, bool])
def test_other_numbers_become_float64(data, dtype):
    converted = np.round(np.clip(data, -9, 9)).astype(dtype)
    stack = KernelStack.from_arrays(converted, psd="ignore")
    assert stack.dtype == stack.data.dtype == np.float64
    assert stack.data.dtype.isnative
    assert_array_equal(stack.data, converted)


def test_a_float64_array_is_not_copied(data):
    assert np.shares_memory(KernelStack.from_arrays(data).data, data)
    assert np.shares_memory(KernelStack.from_arrays(data[0]).data, data)


def test_another_memory_order_is_copied_to_rows(data):
    stack = KernelStack.from_arrays(np.moveaxis(np.moveaxis(data, 0, -1).copy(), -1, 0))
    assert stack.data.flags.c_contiguous
    assert_array_equal(stack.data, data)


def test_a_memmap_stays_on_disk(data, tmp_path):
    np.save(tmp_path / "data.npy", data)
    stack = KernelStack.from_arrays(np.load(tmp_path / "data.npy", mmap_mode="r"))
    assert isinstance(stack.data, np.memmap)
    assert_array_equal(stack.combine([1, 0, 2]), KernelStack.from_arrays(data).combine([1, 0, 2]))


def test_the_stack_is_read_only_and_the_given_array_is_not(data):
    stack = KernelStack.from_arrays(data)
    with pytest.raises(ValueError, match="read-only"):
        stack.data[0, 0, 0] = 1.0
    assert data.flags.writeable
    for derived in (stack[:3], stack.select([0]), stack.materialized(), stack.scaled(np.ones(3))):
        assert not derived.data.flags.writeable


def test_a_square_block_can_be_told_from_a_gram(data):
    block = KernelStack.from_arrays(data[:, ::-1], gram=False)
    assert not block.gram
    assert block.row_diag is block.col_diag is None


def test_as_many_kernels_as_rows_of_a_block(data):
    block = np.ones((5, 5, N_ROWS))
    assert KernelStack.from_arrays(block, gram=False).shape == (5, N_ROWS, 5)
    assert KernelStack.from_arrays(list(block)).shape == (5, N_ROWS, 5)


# -- an array for scikit-learn ---------------------------------------------------------------


def test_shape_length_and_array(any_stack):
    block = any_stack[:4]
    assert block.shape == (4, N_ROWS, 3)
    assert block.ndim == len(block.shape)
    assert len(block) == 4
    assert block.n_kernels == 3
    whole = np.asarray(block)
    assert whole.shape == block.shape
    assert_allclose(whole, np.moveaxis(dense(block), 0, -1), rtol=1e-12, atol=1e-14)
    assert np.asarray(block, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="array with copy=False"):
        np.array(block, copy=False)


def test_repr_shows_the_first_names():
    few = KernelStack.from_arrays(gram_data(2, 3), names=["rbf", "linear"])
    assert repr(few) == "KernelStack(2 kernels, 3 x 3: 'rbf', 'linear')"
    many = KernelStack.from_arrays(gram_data(8, 3))
    assert repr(many).startswith("KernelStack(8 kernels, 3 x 3: 'kernel0', ")
    assert repr(many).endswith("'kernel5', …)")


@pytest.mark.parametrize("key", [0, np.int64(1), (0, slice(None)), (slice(None), 2), (1, 2)])
def test_a_single_sample_is_no_stack(plain, key):
    with pytest.raises(TypeError, match="slice or an array, not an int"):
        plain[key]


@pytest.mark.parametrize("key", [(0, 1, 2), (slice(None), slice(None), 0), (..., ..., ...)])
def test_kernels_are_not_an_index(plain, key):
    with pytest.raises(TypeError, match="rows and columns; use select"):
        plain[key]


@pytest.mark.parametrize("key", [[N_ROWS], [True, False], [0.5]])
def test_samples_that_do_not_exist(plain, key):
    with pytest.raises(IndexError):
        plain[key]


MASK = np.arange(N_ROWS) % 3 == 0
KEYS = {
    "slice": slice(1, 7, 2),
    "backwards": slice(None, None, -1),
    "everything": slice(None),
    "mask": MASK,
    "list-mask": MASK.tolist(),
    "list": [4, 0, 4],
    "array": np.array([8, 2]),
    "negative": np.array([-1, -2]),
    "tuple-of-one": (np.array([3, 1]),),
    "none": [],
    "no-array": np.array([]),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_rows(any_stack, key):
    part, expected = any_stack[key], dense(any_stack)
    index = key[0] if isinstance(key, tuple) else key
    index = np.arange(N_ROWS)[np.asarray(index, dtype=int) if np.size(index) == 0 else index]
    assert_allclose(dense(part), expected[:, index], rtol=1e-12, atol=1e-14)
    assert_array_equal(part.row_diag, any_stack.row_diag[:, index])
    assert_array_equal(part.col_diag, any_stack.col_diag)
    assert part.gram == np.array_equal(index, np.arange(N_ROWS))


def test_rows_with_an_ellipsis(any_stack):
    assert_array_equal(dense(any_stack[[2, 0], ...]), dense(any_stack[[2, 0]]))
    assert_array_equal(dense(any_stack[..., [2, 0]]), dense(any_stack[:, [2, 0]]))


@pytest.mark.parametrize("rows", [slice(2, 5), MASK, [4, 0, 4]])
@pytest.mark.parametrize("cols", [slice(2, 5), *slow(MASK, [0, 5])])
def test_rows_and_columns(any_stack, rows, cols):
    part = any_stack[rows, cols]
    expected = dense(any_stack)[:, rows][:, :, cols]
    assert_allclose(dense(part), expected, rtol=1e-12, atol=1e-14)
    assert_array_equal(part.row_diag, any_stack.row_diag[:, rows])
    assert_array_equal(part.col_diag, any_stack.col_diag[:, cols])
    r, c = np.arange(N_ROWS)[rows], np.arange(N_ROWS)[cols]
    assert part.gram == np.array_equal(r, c)
    assert_array_equal(dense(any_stack[np.ix_(r, c)]), dense(part))


def test_the_gram_flag_needs_equal_samples_in_equal_order(plain):
    assert plain[np.ix_([3, 1], [3, 1])].gram
    assert not plain[np.ix_([3, 1], [1, 3])].gram
    assert not plain[np.ix_([0, 1], [0, 1])][[0]].gram
    assert not KernelStack.from_arrays(plain.data, gram=False)[[0, 1], [0, 1]].gram


def test_a_part_of_centred_samples_is_not_centred(plain):
    centred = Center().fit_transform(plain)
    assert centred.centered
    assert not centred[:4, :4].centered


def test_slices_are_copies(plain, data):
    part = plain[:, :]
    assert not np.shares_memory(part.data, data)


# -- kernels and their sums ------------------------------------------------------------------


def test_kernel_by_name_and_position(any_stack):
    for j, name in enumerate(NAMES):
        assert_allclose(any_stack.kernel(j), dense(any_stack)[j], rtol=1e-12, atol=1e-14)
        assert_array_equal(any_stack.kernel(name), any_stack.kernel(j))
    assert_array_equal(any_stack.kernel(-1), any_stack.kernel("c"))
    with pytest.raises(ValueError, match="no kernel 'd', only a, b, c"):
        any_stack.kernel("d")


def test_a_kernel_is_a_copy(plain, data):
    before = data.copy()
    plain.kernel(0)[...] = 7.0
    assert_array_equal(data, before)


def test_diagonals_follow_the_transforms(any_stack):
    diagonal = np.einsum("jii->ji", dense(any_stack))
    assert_allclose(any_stack.row_diag, diagonal, rtol=1e-10, atol=1e-12)
    assert_allclose(any_stack.col_diag, diagonal, rtol=1e-10, atol=1e-12)


weight = st.one_of(st.just(0.0), st.floats(-3, 3), st.floats(1e-12, 1e-6))


@st.composite
def problems(draw):
    n_kernels, n_rows = draw(st.integers(1, 4)), draw(st.integers(2, 8))
    gram = KernelStack.from_arrays(gram_data(n_kernels, n_rows, draw(st.integers(0, 99))))
    transformed = TRANSFORMS[draw(st.sampled_from(sorted(TRANSFORMS)))](gram)
    rows = draw(st.lists(st.integers(0, n_rows - 1), min_size=1, max_size=5))
    stack = draw(st.sampled_from([transformed, transformed[rows], transformed[:, rows]]))
    weights = draw(st.lists(weight, min_size=n_kernels, max_size=n_kernels))
    n_columns = draw(st.integers(1, 3))
    columns = np.random.default_rng(0).normal(size=(stack.shape[1], n_columns))
    return stack, np.array(weights), columns


@pytest.mark.parametrize("n_rows", [20, 128, 129])
@pytest.mark.parametrize("n_columns", [1, 2, 6])
def test_products_of_few_and_of_many_rows(n_rows, n_columns):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((3, n_rows, 15))
    block = KernelStack.from_arrays(data, gram=False)
    columns = rng.standard_normal((15, n_columns))
    assert_allclose(block.apply(columns), data @ columns, rtol=0, atol=1e-13)
    assert block.apply(columns).mT.flags.c_contiguous


@settings(deadline=None, max_examples=150)
@given(problems())
def test_sums_and_products_equal_the_naive_ones(problem):
    stack, weights, columns = problem
    kernels = dense(stack)
    size = np.abs(kernels).max() * len(columns) + 1.0
    total = np.einsum("j,jrc->rc", weights, kernels)
    assert_allclose(stack.combine(weights), total, rtol=0, atol=1e-13 * size)
    assert_allclose(stack.apply(columns), kernels @ columns, rtol=0, atol=1e-12 * size)
    assert_allclose(
        stack.apply_combined(weights, columns), total @ columns, rtol=0, atol=1e-12 * size
    )
    own = weights[:, None, None] * (columns + np.arange(len(weights))[:, None, None])
    expected = np.einsum("jrc,jck->rk", kernels, own)
    size *= np.abs(own).max() + 1.0
    assert_allclose(stack.apply_each(own), expected, rtol=0, atol=1e-12 * size)


def test_sum_into_a_given_array(any_stack):
    out = np.full((N_ROWS, N_ROWS), np.nan)
    assert any_stack.combine([1, 2, 3], out=out) is out
    assert_array_equal(out, any_stack.combine([1, 2, 3]))


@pytest.mark.parametrize(
    "out",
    [
        np.empty((N_ROWS, N_ROWS), order="F"),
        np.empty((N_ROWS, N_ROWS), dtype=np.float32),
        np.empty((N_ROWS, 1)),
    ],
)
def test_an_array_that_cannot_take_the_sum(plain, out):
    with pytest.raises(ValueError, match=r"out must be a C-contiguous float64.*\(9, 9\)"):
        plain.combine([1, 2, 3], out=out)


@pytest.mark.parametrize("n_columns", [1, 2])
def test_products_into_a_used_array(any_stack, n_columns):
    first, second = np.random.default_rng(0).normal(size=(2, N_ROWS, n_columns))
    expected = any_stack.apply(second)
    used = any_stack.apply(first)
    assert_array_equal(any_stack.apply(second, out=used), expected)


@pytest.mark.parametrize("weights", [[1.0], [1.0] * 4, [[1.0] * 3], 1.0])
def test_one_weight_per_kernel(plain, weights):
    with pytest.raises(ValueError, match="3 kernels, weights of shape"):
        plain.combine(weights)
    with pytest.raises(ValueError, match="3 kernels, weights of shape"):
        plain.apply_combined(weights, np.ones((N_ROWS, 1)))


@pytest.mark.parametrize("chosen", [[2, 0], [-1, 0], [True, False, True], slice(None, None, 2)])
def test_select(any_stack, chosen):
    mask = np.asarray(chosen) if isinstance(chosen, list) else chosen
    part = any_stack.select(mask)
    assert part.names == np.array(NAMES)[mask].tolist()
    assert_array_equal(dense(part), dense(any_stack)[mask])
    assert_array_equal(part.row_diag, any_stack.row_diag[mask])
    assert_array_equal(part.col_diag, any_stack.col_diag[mask])
    assert part.gram


def test_selecting_all_copies_nothing(any_stack):
    assert any_stack.select(np.arange(3)) is any_stack


def test_a_block_of_rows(any_stack):
    block = any_stack.rows(slice(2, 6), np.array([2, 1]))
    assert block.names == ["c", "b"]
    assert_array_equal(dense(block), dense(any_stack)[[2, 1], 2:6])
    assert_array_equal(block.row_diag, any_stack.row_diag[[2, 1], 2:6])
    assert not block.gram
    assert not block.centered
    every = any_stack.rows(slice(2, 6), np.arange(3))
    assert np.shares_memory(every.data, any_stack.data)


def test_contributing_leaves_out_what_rounding_hides():
    stack = KernelStack.from_arrays([np.eye(3), 1e25 * np.eye(3), np.zeros((3, 3))])
    assert stack.contributing(np.array([1.0, 1.0, 1.0])).tolist() == [1]
    assert stack.contributing(np.array([1.0, 1e-25, 1.0])).tolist() == [0, 1]
    assert stack.contributing(np.array([1.0, 0.0, 1.0])).tolist() == [0]
    assert stack.contributing(np.zeros(3)).tolist() == []


def test_a_small_diagonal_hides_no_entry():
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert_array_equal(KernelStack.from_arrays(swap, psd="ignore").combine([2.0]), 2 * swap)
    assert_array_equal(KernelStack(swap[None], ["swap"], gram=True).combine([2.0]), 2 * swap)
    # Minus squared distances: positive semi-definite once centred, zero on the diagonal.
    conditionally = check_stack(KernelStack(-swap[None], ["d"], gram=True), centered=True)
    assert_array_equal(conditionally.combine([2.0]), -2 * swap)
    # The self-similarity of the only row is far below its similarities with the columns.
    block = KernelStack.from_arrays([[[1e-10, 1.0]], [[1.0, 1.0]]], row_diag=[[1e-20], [1.0]])
    assert_array_equal(block.combine([1.0, 0.0]), [[1e-10, 1.0]])
    assert_array_equal(block.combine([1.0, 1.0]), [[1.0 + 1e-10, 2.0]])


def test_small_parts_are_left_out_of_a_centred_sum():
    conditionally = np.array([[0.0, -1.0], [-1.0, 0.0]])
    stack = KernelStack(np.stack([conditionally, np.eye(2)]), ["d", "id"], gram=True)
    centred = Center().fit_transform(check_stack(stack, centered=True))
    assert centred.contributing(np.array([1e-25, 1.0])).tolist() == [1]


# -- alignment -------------------------------------------------------------------------------


def cosines(kernels):
    flat = kernels.reshape(len(kernels), -1)
    norms = np.linalg.norm(flat, axis=1)
    return flat @ flat.T / np.outer(norms, norms)


def test_alignment_is_the_cosine_of_the_entries(any_stack):
    assert_allclose(any_stack.alignment(), cosines(dense(any_stack)), rtol=1e-10, atol=1e-12)


def test_alignment_after_centring(plain, data):
    P = np.eye(N_ROWS) - 1 / N_ROWS
    assert_allclose(plain.alignment(centered=True), cosines(P @ data @ P), rtol=1e-10, atol=1e-12)


def test_alignment_of_a_block(plain, data):
    assert_allclose(plain[:2].alignment(), cosines(data[:, :2]), rtol=1e-12)


def test_a_zero_kernel_is_aligned_with_nothing(data):
    stack = KernelStack.from_arrays([data[0], np.zeros((N_ROWS, N_ROWS))])
    assert_array_equal(stack.alignment() == 0, [[False, True], [True, True]])


@pytest.mark.parametrize("constant", [0.1, 1.0, 1 / 3, 123.456])
def test_a_constant_kernel_is_aligned_with_nothing_once_centred(data, constant):
    stack = KernelStack.from_arrays([data[0], np.full((N_ROWS, N_ROWS), constant)])
    alignment = stack.alignment(centered=True)
    assert_allclose(alignment[0, 0], 1.0)
    assert_array_equal(alignment[1], [0.0, 0.0])


# -- blocks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [1, 2 * N_ROWS, 4 * N_ROWS + 1])
def test_block_size_changes_nothing_but_rounding(any_stack, monkeypatch, entries):
    def everything():
        alignment = any_stack.alignment()
        return any_stack.combine([1, 0.5, 2]), any_stack.materialized().data, alignment

    whole = everything()
    monkeypatch.setattr("manykernels.kernels.operators._BLOCK_ENTRIES", entries)
    assert len(list(any_stack._row_blocks())) > 1
    for in_blocks, at_once in zip(everything(), whole, strict=True):
        assert_allclose(in_blocks, at_once, rtol=1e-13, atol=1e-14)


# -- copies and files ------------------------------------------------------------------------


def assert_equal_stacks(left, right):
    assert left.names == right.names
    for flag in ("gram", "checked", "centered"):
        assert getattr(left, flag) == getattr(right, flag)
    assert_allclose(dense(left), dense(right), rtol=1e-12, atol=1e-14)
    assert_array_equal(left.row_diag, right.row_diag)
    assert_array_equal(left.col_diag, right.col_diag)
    weights = np.arange(1.0, left.n_kernels + 1)
    assert_allclose(left.combine(weights), right.combine(weights), rtol=1e-10, atol=1e-12)


def test_materialized_applies_the_transforms(any_stack):
    plain = any_stack.materialized()
    assert_equal_stacks(plain, any_stack)
    assert_array_equal(plain.kernel(1), plain.data[1])
    assert not np.shares_memory(plain.data, any_stack.data)


def test_materialized_in_a_file(any_stack, tmp_path):
    path = tmp_path / "stack.npy"
    on_disk = any_stack.materialized(path)
    assert isinstance(on_disk.data, np.memmap)
    assert_equal_stacks(on_disk, any_stack)
    assert_array_equal(np.load(path), any_stack.materialized().data)


@pytest.mark.parametrize("name", ["stack.npz", "stack"])
def test_save_and_load(any_stack, tmp_path, name):
    any_stack.save(tmp_path / name)
    loaded = KernelStack.load(tmp_path / name)
    assert_equal_stacks(loaded, any_stack)
    assert not loaded.data.flags.writeable


def test_save_and_load_a_block(plain, tmp_path):
    with_diagonals = plain[:2, 3:]
    without = KernelStack.from_arrays(plain.data[:, :2])
    for block in (with_diagonals, without):
        block.save(str(tmp_path / "block.npz"))
        loaded = KernelStack.load(str(tmp_path / "block.npz"))
        assert not loaded.gram
        assert_array_equal(loaded.data, block.data)
        assert_array_equal(loaded.row_diag, block.row_diag)
        assert_array_equal(loaded.col_diag, block.col_diag)


def test_an_indefinite_stack_is_saved_as_one(tmp_path):
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    KernelStack.from_arrays(swap, psd="ignore").save(tmp_path / "swap.npz")
    assert_array_equal(KernelStack.load(tmp_path / "swap.npz").combine([1.0]), swap)


def test_load_refuses_a_foreign_archive(tmp_path):
    np.savez(tmp_path / "other.npz", data=np.ones((1, 2, 2)), weights=np.ones(1))
    with pytest.raises(ValueError, match=r"other\.npz is not a saved KernelStack.*flags, names"):
        KernelStack.load(tmp_path / "other.npz")


def test_load_refuses_a_single_array(tmp_path):
    np.save(tmp_path / "stack.npy", np.ones((1, 2, 2)))
    with pytest.raises(ValueError, match=r"stack\.npy is not a saved KernelStack"):
        KernelStack.load(tmp_path / "stack.npy")


def test_load_executes_nothing(tmp_path):
    np.savez(tmp_path / "objects.npz", data=np.array([print]), names=["a"], flags=[True] * 5)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        KernelStack.load(tmp_path / "objects.npz")


@pytest.mark.parametrize("twin", [lambda s: pickle.loads(pickle.dumps(s)), copy.deepcopy])
def test_copies_are_equal_and_read_only(any_stack, twin):
    other = twin(any_stack)
    assert_equal_stacks(other, any_stack)
    assert not other.data.flags.writeable


def test_joblib_memmap(any_stack, tmp_path):
    joblib.dump(any_stack, tmp_path / "stack.joblib")
    mapped = joblib.load(tmp_path / "stack.joblib", mmap_mode="r")
    assert isinstance(mapped.data, np.memmap)
    assert not mapped.row_diag.flags.writeable
    assert_equal_stacks(mapped, any_stack)
    columns = np.ones((N_ROWS, 2))
    assert_array_equal(mapped.apply(columns), any_stack.apply(columns))
    assert_equal_stacks(mapped[2:5, 2:5], any_stack[2:5, 2:5])
    centred = Center().fit_transform(mapped)
    assert_equal_stacks(centred, Center().fit_transform(any_stack))


# -- features of the rows ----------------------------------------------------------------------

TABLE = np.random.default_rng(7).normal(size=(N_ROWS, 2))


def test_features_are_cut_along_with_the_rows(any_stack):
    stack = any_stack.with_features(TABLE)
    rows, cols = [4, 0, 4], [1, 2]
    mask = np.arange(N_ROWS) % 2 == 0
    for part, expected in [
        (stack[rows], TABLE[rows]),
        (stack[2:5], TABLE[2:5]),
        (stack[mask], TABLE[mask]),
        (stack[rows, cols], TABLE[rows]),
        (stack[np.ix_(rows, cols)], TABLE[rows]),
        (stack[:, cols], TABLE),
        (stack[rows][[1]], TABLE[[0]]),
        (stack.rows(slice(2, 6), np.array([2, 1])), TABLE[2:6]),
        (stack.rows(slice(2, 6), np.arange(3)), TABLE[2:6]),
        (stack.select([2, 0]), TABLE),
        (stack.materialized(), TABLE),
        (check_stack(stack, psd="clip"), TABLE),
        (Spherical().fit_transform(stack), TABLE),
        (Center().fit_transform(stack), TABLE),
    ]:
        assert_array_equal(part.features, expected)
    assert_equal_stacks(stack, any_stack)


def test_features_belong_to_the_stack_alone(plain):
    table = TABLE.copy()
    stack = plain.with_features(table)
    assert plain.features is None
    assert np.shares_memory(stack.data, plain.data)
    table[:] = 0.0
    assert_array_equal(stack.features, TABLE)
    with pytest.raises(ValueError, match="read-only"):
        stack.features[0] = 1.0
    other = stack.with_features(TABLE[:, :1].tolist())
    assert other.features.shape == (N_ROWS, 1)
    assert stack.features.shape == (N_ROWS, 2)


def test_features_are_saved_and_copied(any_stack, tmp_path):
    for stack in (any_stack.with_features(TABLE), any_stack.with_features(TABLE)[:3, 4:]):
        stack.save(tmp_path / "stack.npz")
        loaded = KernelStack.load(tmp_path / "stack.npz")
        for twin in (loaded, pickle.loads(pickle.dumps(stack)), copy.deepcopy(stack)):
            assert_array_equal(twin.features, stack.features)
            assert_equal_stacks(twin, stack)
    any_stack.save(tmp_path / "without.npz")
    assert KernelStack.load(tmp_path / "without.npz").features is None


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE[:-1], r"one row per row of the stack, 9; got an array of shape \(8, 2\)"),
        (TABLE[:, 0], r"got an array of shape \(9,\)"),
        (TABLE[:, :, None], r"got an array of shape \(9, 2, 1\)"),
        (np.where(np.arange(9)[:, None] == 3, np.nan, TABLE), "not finite at row 3, column 0"),
        (np.where(TABLE[5, 1] == TABLE, np.inf, TABLE), "not finite at row 5, column 1"),
        ([["word"]] * 9, "could not convert string to float: 'word'"),
    ],
    ids=["short", "flat", "deep", "nan", "inf", "words"],
)
def test_tables_that_are_no_features(plain, table, message):
    with pytest.raises(ValueError, match=message):
        plain.with_features(table)


class FeatureReader(BaseEstimator):
    """An estimator on kernels that notes the features it is given."""

    def __init__(self, number=0):
        self.number = number

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def fit(self, X, y):
        assert X.gram
        assert_array_equal(X.features, TABLE[y])
        return self

    def score(self, X, y):
        assert X.shape == (3, 6, 3)
        assert_array_equal(X.features, TABLE[y])
        return float(self.number)


def test_searches_cut_features_along_with_samples(plain):
    stack, rows = plain.with_features(TABLE), np.arange(N_ROWS)
    search = GridSearchCV(FeatureReader(), {"number": [1, 2]}, cv=KFold(3), error_score="raise")
    assert search.fit(stack, rows).best_params_ == {"number": 2}
