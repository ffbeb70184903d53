"""Stacks in single precision: stored so, in memory and on disk, and summed in double precision."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV

from manykernels import MKFDA
from manykernels.kernels import RBF, KernelStack, KernelUnion, Laplacian, Linear, checks, operators
from manykernels.kernels.composition import Constant
from manykernels.kernels.stack import check_stack
from manykernels.kernels.transforms import Center, Multiplicative, Spherical, UnitTrace
from manykernels.utils import numerics
from tests.problems import slow

M = 41
RNG = np.random.default_rng(3)
X = RNG.normal(size=(M, 3))
Y = X[:, 0] + X[:, 1] ** 2 > 0.5
UNION = KernelUnion(
    [("wide", RBF(0.2)), ("edge", Laplacian(0.5)), ("line", Linear()), ("sum", RBF() + Linear())]
).fit(X)
WEIGHTS = np.array([0.3, 0.0, 0.5, 1.2])
STEPS = {
    "none": [],
    "scaled": [UnitTrace],
    "centred": [Center, Multiplicative],
    "spherical": [Spherical],
    "spherical-centred": [Spherical, Center],
}


@pytest.fixture(params=[1, *slow(3)], ids=["one thread", "three threads"])
def small_strips(monkeypatch, request):
    """Several strips and tiles of each kernel, the last ones not full."""
    monkeypatch.setattr(operators, "_STRIP_ENTRIES", 150)
    monkeypatch.setattr(operators, "TILE_ROWS", 6)
    monkeypatch.setattr(numerics, "openmp_n_threads", lambda **_: request.param)


def prepared(stack, steps):
    for step in steps:
        stack = step().fit_transform(stack)
    return stack


def results(stack):
    """Everything that is summed over entries of kernels."""
    columns = np.random.default_rng(0).normal(size=(stack.shape[1], 3))
    own = np.random.default_rng(1).normal(size=(stack.n_kernels, *columns.shape))
    outs = [np.empty(stack.shape[:2]) for _ in range(2)]
    stack.combine_all(np.array([WEIGHTS, WEIGHTS[::-1]]), outs)
    found = {
        "combine": stack.combine(WEIGHTS),
        "combine_all": np.array(outs),
        "apply": stack.apply(columns),
        "apply one": stack.apply(columns[:, :1]),
        "apply_combined": stack.apply_combined(WEIGHTS, columns),
        "apply_each": stack.apply_each(own),
        "kernels": np.array([stack.kernel(j) for j in range(stack.n_kernels)]),
        "inner_products": stack.inner_products(),
        "inner_products_with": stack.inner_products_with(outs[0]),
        "array": np.asarray(stack),
    }
    if stack.gram:
        indices = np.array([7, 0, 30])
        found |= {
            "apply_columns": stack.apply_columns(indices, columns[:3]),
            "combine_block": stack.combine_block(WEIGHTS, indices),
            "alignment": stack.alignment(centered=True),
            "diagonal": stack.row_diag,
            "errors": stack.form_errors(columns, columns),
        }
    return found


# -- storing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("Z", [None, X[:7]], ids=["gram", "block"])
@pytest.mark.parametrize("mapped", [False, True], ids=["memory", "disk"])
def test_values_are_those_of_double_precision_rounded_once(tmp_path, Z, mapped):
    path = tmp_path / "stack.npy" if mapped else None
    single, double = UNION(X, Z, dtype=np.float32, memmap=path), UNION(X, Z)
    assert single.dtype == np.float32
    assert double.dtype == np.float64
    assert isinstance(single.data, np.memmap) == mapped
    assert single.guarantees == double.guarantees
    assert_array_equal(single.data, double.data.astype(np.float32))
    with pytest.raises(ValueError, match="read-only"):
        single.data[0, 0, 0] = 1.0


def test_matrices_are_converted_when_asked_to():
    double = UNION(X)
    single = KernelStack.from_arrays(double.data, dtype="float32")
    assert single.dtype == np.float32
    assert_array_equal(single.data, double.data.astype(np.float32))
    assert np.shares_memory(
        KernelStack.from_arrays(single.data, dtype="float32").data, single.data
    )
    again = KernelStack.from_arrays(list(single.data), dtype=float)
    assert again.dtype == np.float64
    assert_array_equal(again.data, single.data)


@pytest.mark.parametrize("dtype", [np.float16, int, "numbers", complex])
def test_other_types_of_storage(dtype):
    for make in (UNION, lambda X, dtype: KernelStack.from_arrays(UNION(X).data, dtype=dtype)):
        with pytest.raises(ValueError, match="float64 or float32, not as dtype="):
            make(X, dtype=dtype)


@pytest.mark.parametrize("kernel", [Linear(), Linear() + Constant(1.0)], ids=["tiles", "whole"])
def test_numbers_too_large_for_single_precision(kernel):
    large = 1e20 * X
    union = KernelUnion([("good", RBF()), ("large", kernel)]).fit(large)
    assert np.isfinite(union(large).data).all()
    with pytest.raises(ValueError, match=r"(?i)'large'.*not finite \(-?inf\) at row \d+, column"):
        union(large, dtype=np.float32)
    with pytest.raises(ValueError, match=r"'kernel1' has a value that is not finite"):
        KernelStack.from_arrays(union(large).data, dtype=np.float32)


# -- sums ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_strips")
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("part", ["gram", "unchecked", "rows", "columns"])
def test_sums_are_those_of_double_precision(tmp_path, steps, part):
    single = UNION(X, dtype=np.float32, memmap=tmp_path / "stack.npy")
    if part == "unchecked":  # nothing says that the two halves are equal
        single = KernelStack(single.data, single.names, gram=True)
    double = KernelStack(single.data.astype(float), single.names, gram=True)
    single, double = prepared(single, steps), prepared(double, steps)
    if part == "rows":
        single, double = single.rows(slice(3, 20), np.arange(4)), double[3:20]
    elif part == "columns":
        single, double = single[:, 5:9], double[:, 5:9]
    found, expected = results(single), results(double)
    for name in expected:
        assert found[name].dtype == np.float64
        scale = np.abs(expected[name]).max()
        assert_allclose(found[name], expected[name], rtol=1e-11, atol=1e-13 * scale, err_msg=name)


@pytest.mark.usefixtures("small_strips")
def test_from_disk_to_the_last_digit(tmp_path):
    mapped = UNION(X, dtype=np.float32, memmap=tmp_path / "stack.npy")
    in_memory = UNION(X, dtype=np.float32)
    for steps in STEPS.values():
        pairs = zip(
            results(prepared(mapped, steps)).values(),
            results(prepared(in_memory, steps)).values(),
            strict=True,
        )
        for one, other in pairs:
            assert_array_equal(one, other)


@pytest.mark.usefixtures("small_strips")
def test_half_of_a_gram_matrix_is_not_read():
    stack = UNION(X, dtype=np.float32)
    read = np.zeros((M, M), dtype=bool)
    for place in operators.strips(M, M, mirrored=True):
        read[place] = True
    assert read[np.triu_indices(M)].all()
    assert read.mean() < 0.7
    poisoned = stack._with_data(np.where(read, stack.data, np.float32(np.nan)))
    columns = np.random.default_rng(0).normal(size=(M, 2))
    assert_array_equal(poisoned.combine(WEIGHTS), stack.combine(WEIGHTS))
    assert_array_equal(poisoned.combine(WEIGHTS), poisoned.combine(WEIGHTS).T)
    assert_array_equal(poisoned.apply(columns), stack.apply(columns))


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(("n_rows", "n_cols"), [(1, 1), (7, 7), (5, 1000), (41, 41)])
def test_strips_cover_every_row_once(monkeypatch, n_rows, n_cols, mirrored):
    monkeypatch.setattr(operators, "_STRIP_ENTRIES", 60)
    places = operators.strips(n_rows, n_cols, mirrored=mirrored)
    assert [r for rows, _ in places for r in range(rows.start, rows.stop)] == list(range(n_rows))
    for rows, cols in places:
        assert (cols.start, cols.stop) == (rows.start if mirrored else 0, n_cols)
        entries = (rows.stop - rows.start) * (cols.stop - cols.start)
        assert entries <= 60 or rows.stop - rows.start == 1


# -- checks ----------------------------------------------------------------------------------


def test_lanczos_is_that_of_double_precision():
    matrix = UNION(X, dtype=np.float32).data[0]
    for centered in (False, True):
        single = checks.lanczos_extremes(matrix, 12, centered=centered)
        double = checks.lanczos_extremes(matrix.astype(float), 12, centered=centered)
        assert_allclose(single, double, rtol=1e-10)


@pytest.mark.parametrize("psd", ["raise", "exact"])
@pytest.mark.parametrize("m", [200, 400])
def test_rounding_explains_small_negative_eigenvalues_only(m, psd):
    """The largest eigenvalue is hardly above the largest entry, so that rounding is seen best."""
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(m, m)))[0]
    values = np.ones(m)
    values[: m // 2] = 0.0
    definite = ((basis * values) @ basis.T).astype(np.float32)
    definite = np.triu(definite) + np.triu(definite, 1).T
    assert np.linalg.eigvalsh(definite.astype(float))[0] < 0.0
    assert KernelStack.from_arrays(definite, psd=psd).guarantees.psd
    values[0] = -0.01
    indefinite = ((basis * values) @ basis.T).astype(np.float32)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        KernelStack.from_arrays(indefinite, psd="exact")


def test_a_variance_that_is_rounding_counts_as_none():
    """Of this kernel nothing but the rounding of ones is left in single precision."""
    nearly = KernelUnion([("flat", RBF(2e-9)), ("good", RBF(0.5))]).fit(X)
    single, double = nearly(X, dtype=np.float32), nearly(X)
    assert np.ptp(single.data[0]) > 0.0
    assert single.without_variance().tolist() == [0]
    assert double.without_variance().tolist() == []
    assert Multiplicative().fit(single).erased().tolist() == [0]
    assert Multiplicative().fit(double).erased().tolist() == []


# -- parts, files and splits -----------------------------------------------------------------


def test_neighbouring_kernels_are_not_copied(tmp_path):
    stack = UNION(X, dtype=np.float32, memmap=tmp_path / "stack.npy")
    for chosen, copied in [([1, 2], False), ([3], False), ([0, 2], True), ([2, 1], True)]:
        part = stack.select(chosen)
        assert_array_equal(part.data, np.asarray(stack.data)[chosen])
        assert np.shares_memory(part.data, stack.data) != copied


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_save_and_load_from_disk(tmp_path, steps):
    stack = prepared(UNION(X, dtype=np.float32, memmap=tmp_path / "stack.npy"), steps)
    stack.save(tmp_path / "saved.npz")
    loaded = KernelStack.load(tmp_path / "saved.npz")
    assert loaded.dtype == (np.float64 if steps else np.float32)
    assert loaded.centered == stack.centered
    assert_array_equal(np.asarray(loaded), np.asarray(stack))
    # The file of a stack is an array that can be mapped again.
    mapped = np.load(tmp_path / "stack.npy", mmap_mode="r")
    again = prepared(KernelStack.from_arrays(mapped, stack.names), steps)
    assert isinstance(again.data, np.memmap)
    assert_array_equal(again.combine(WEIGHTS), stack.combine(WEIGHTS))


def test_a_search_cuts_it_from_disk(tmp_path):
    stack = UNION(X, dtype=np.float32, memmap=tmp_path / "stack.npy")
    part = stack[np.ix_([3, 1, 8], [3, 1, 8])]
    assert part.dtype == np.float32
    assert part.gram
    searches = [
        GridSearchCV(MKFDA("precomputed"), {"reg": [0.1, 1.0]}, cv=3).fit(given, Y)
        for given in (stack, KernelStack.from_arrays(stack.data.astype(float), stack.names))
    ]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    assert_array_equal(*scores)


# -- memory ----------------------------------------------------------------------------------


def test_too_much_memory_names_the_ways_out(monkeypatch):
    monkeypatch.setattr(numerics, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError) as caught:
        UNION(X)
    for way in ("float32", "memmap=", 'solver="coordinate"', 'approximation="nystrom"'):
        assert way in str(caught.value)


def test_half_of_the_memory(monkeypatch):
    monkeypatch.setattr(numerics, "available_memory", lambda: 4 * 4 * M**2)
    with pytest.raises(MemoryError):
        UNION(X)
    assert check_stack(UNION(X, dtype=np.float32)).dtype == np.float32
