"""Negative eigenvalues by a few Lanczos steps, exact symmetry, single precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manykernels import MKFDA, MKSVC, KernelStack, MKOneClassSVM
from manykernels.kernels import RBF, checks
from manykernels.kernels.stack import check_stack
from manykernels.kernels.transforms import Center, Spherical
from tests.problems import slow

MANY = checks.EXACT_ROWS + 44
X = np.random.default_rng(0).normal(size=(MANY, 4))
DEFINITE = RBF(0.1)(X)
LARGEST = np.linalg.eigvalsh(DEFINITE)[-1]


def planted(value, direction="spread", matrix=DEFINITE):
    """`matrix` with one direction turned into an eigenvector of −value."""
    u = np.zeros(MANY)
    if direction == "spread":
        u[:] = np.random.default_rng(1).standard_normal(MANY)
    elif direction == "centred":
        u[:] = np.random.default_rng(1).standard_normal(MANY)
        u -= u.mean()
    else:
        u[[3, 200]] = 0.6, 0.8
    u /= np.linalg.norm(u)
    P = np.eye(MANY) - np.outer(u, u)
    result = P @ matrix @ P - value * np.outer(u, u)
    return (result + result.T) / 2


# -- Lanczos -----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.integers(2, 40), st.integers(0, 99), st.booleans())
def test_extremes_are_bounds_and_exact_after_all_steps(size, seed, centered):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(size, size))
    matrix = matrix + matrix.T
    P = np.eye(size) - centered / size
    exact = np.linalg.eigvalsh(P @ matrix @ P)
    scale = np.abs(exact).max() + 1.0
    smallest, largest = checks.lanczos_extremes(matrix, size, centered=centered)
    # Among vectors that are centred, the direction of the mean is none.
    assert exact[0] - 1e-10 * scale <= smallest
    assert largest <= exact[-1] + 1e-10 * scale
    if not centered:
        assert_allclose([smallest, largest], exact[[0, -1]], atol=1e-8 * scale)
    few = checks.lanczos_extremes(matrix, 3, centered=centered)
    assert exact[0] - 1e-10 * scale <= few[0] <= few[1] <= exact[-1] + 1e-10 * scale


@pytest.mark.parametrize("matrix", [np.zeros((300, 300)), np.ones((300, 300)), np.eye(300)])
@pytest.mark.parametrize("centered", [False, True])
def test_few_different_eigenvalues(matrix, centered):
    smallest, largest = checks.lanczos_extremes(matrix, 20, centered=centered)
    assert abs(smallest) < 1e-9 or smallest == pytest.approx(1.0)
    assert largest < np.linalg.eigvalsh(matrix)[-1] + 1e-9


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_size_does_not_matter(size):
    indefinite = np.array(lanczos_of(planted(0.5)))
    assert_allclose(lanczos_of(planted(0.5) * size), indefinite * size, rtol=1e-6)


def lanczos_of(matrix):
    return checks.lanczos_extremes(matrix, 20)


@pytest.mark.parametrize("direction", ["spread", "two samples"])
@pytest.mark.parametrize("ratio", [1.0, 1e-2, 1e-3])
def test_gross_negative_eigenvalues_are_found(direction, ratio):
    broken = planted(ratio * LARGEST, direction)
    with pytest.raises(ValueError, match=r"'kernel1' is not positive semi-definite.* go from -"):
        KernelStack.from_arrays([DEFINITE, broken])


@pytest.mark.parametrize("ratio", [1.0, 1e-2, 1e-3])
def test_estimators_find_those_that_centring_leaves(ratio):
    broken = planted(ratio * LARGEST, "centred")
    with pytest.raises(ValueError, match="not positive semi-definite"):
        MKSVC(kernels="precomputed").fit(broken, X[:, 0] > 0)


def test_small_ones_are_left_to_the_exact_check(monkeypatch):
    monkeypatch.setattr(checks, "MOST_STEPS", 18)
    broken = planted(1e-4 * LARGEST, "centred")
    assert KernelStack.from_arrays(broken).checked
    with pytest.raises(ValueError, match="not positive semi-definite"):
        KernelStack.from_arrays(broken, psd="exact")
    clipped = KernelStack.from_arrays(broken, psd="clip").data[0]
    assert np.linalg.eigvalsh(clipped)[0] > -1e-9


@pytest.mark.parametrize("centered", [False, True])
def test_what_is_positive_passes(centered):
    for matrix in (DEFINITE, X @ X.T, RBF(100.0)(X), np.ones((MANY, MANY)), DEFINITE + 50.0):
        stack = check_stack(KernelStack(matrix[None], ["a"], gram=True), centered=centered)
        assert stack.checked
        assert np.shares_memory(stack.data, matrix)


def test_entries_beyond_the_diagonal_are_found_where_lanczos_has_no_chance():
    # Eigenvalues m − 1 and −1: small beside the largest, but nothing of it is a kernel.
    hollow = np.ones((MANY, MANY)) - np.eye(MANY)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        KernelStack.from_arrays(hollow)
    negative = DEFINITE.copy()
    negative[7, 7] = -0.05
    with pytest.raises(ValueError, match="not positive semi-definite"):
        KernelStack.from_arrays(negative)


def test_centred_kernels_may_have_any_mean():
    shifted = KernelStack((DEFINITE - 3.0)[None], ["a"], gram=True)
    assert check_stack(shifted, centered=True).checked
    with pytest.raises(ValueError, match="not positive semi-definite"):
        check_stack(shifted)
    broken = planted(1e-2 * LARGEST, "centred") - 3.0
    with pytest.raises(ValueError, match="not positive semi-definite"):
        MKFDA(kernels="precomputed").fit(broken, X[:, 0] > 0)


def test_integers_are_still_checked_exactly():
    rounded = np.round(30 * DEFINITE).astype(int)
    assert np.linalg.eigvalsh(rounded)[0] < -0.1
    MKFDA(kernels="precomputed").fit(rounded, X[:, 0] > 0)


def test_steps_cost_no_more_on_fewer_rows():
    rows = [300, 1000, 2000, 2500, 3000, 20000]
    steps = [checks.n_steps(n_rows) for n_rows in rows]
    assert steps == [60, 60, 40, 25, 18, 18]


# -- exact symmetry ------------------------------------------------------------------------------


@pytest.mark.parametrize("block_rows", [3, 256])
def test_what_is_nearly_symmetric_becomes_so(monkeypatch, block_rows):
    monkeypatch.setattr(checks, "TILE_ROWS", block_rows)
    given = np.stack([np.eye(8) + 1.0, np.eye(8)])
    given[1, 6, 1] = 0.9e-8
    before = given.copy()
    stack = KernelStack.from_arrays(given)
    assert_array_equal(stack.data, stack.data.mT)
    assert stack.data[1, 6, 1] == stack.data[1, 1, 6] == 0.45e-8
    assert_array_equal(stack.data[0], given[0])
    assert_array_equal(stack.row_diag, np.einsum("jii->ji", given))
    assert_array_equal(given, before)
    assert not stack.data.flags.writeable


def test_entries_near_the_largest_number_are_averaged():
    huge = np.full((2, 2), 1.7e308)
    huge[0, 1] *= 1 - 1e-10
    checks.symmetrize(huge)
    assert np.isfinite(huge).all()
    assert huge[0, 1] == huge[1, 0]


@pytest.mark.parametrize("transform", [Center, Spherical])
def test_transforms_keep_symmetry_to_the_last_digit(transform):
    stack = transform().fit_transform(KernelStack.from_arrays([DEFINITE, X @ X.T + 1 / 3]))
    for matrix in (stack.kernel(0), stack.kernel(1), *stack.materialized().data):
        assert_array_equal(matrix, matrix.T)
    combined = stack.combine([0.3, 0.7])
    assert_array_equal(combined, combined.T)


def test_a_machine_converges_on_a_kernel_that_was_not_quite_symmetric():
    noise = np.random.default_rng(3).uniform(-1, 1, size=DEFINITE.shape)
    almost = DEFINITE + 4e-9 * noise
    machine = MKOneClassSVM(kernels="precomputed", nu=0.2, tol=1e-7).fit(almost)
    assert machine.certificate_.rel_gap <= 1e-7


def test_what_is_symmetric_is_not_copied():
    data = np.stack([DEFINITE, X @ X.T])
    assert np.shares_memory(KernelStack.from_arrays(data).data, data)


# -- single precision ----------------------------------------------------------------------------

SINGLE = np.stack([DEFINITE, X @ X.T]).astype(np.float32)
WEIGHTS = np.array([0.3, 0.7])


def test_single_precision_is_kept_and_not_copied():
    stack = KernelStack.from_arrays(SINGLE)
    assert stack.dtype == np.float32
    assert np.shares_memory(stack.data, SINGLE)
    assert KernelStack.from_arrays(list(SINGLE)).dtype == np.float32
    assert KernelStack.from_arrays([SINGLE[0], SINGLE[1].astype(float)]).dtype == np.float64
    rows = np.arange(0, MANY, 3)
    for part in (stack[rows], stack[np.ix_(rows, rows)], stack.select([1]), stack.materialized()):
        assert part.dtype == np.float32
    assert Center().fit_transform(stack).materialized().dtype == np.float64


@pytest.mark.parametrize("transform", [None, *slow(Center, Spherical)])
@pytest.mark.parametrize("n_columns", [1, *slow(3)])
def test_sums_and_products_are_those_of_double_precision(monkeypatch, transform, n_columns):
    monkeypatch.setattr("manykernels.kernels.operators._STRIP_ENTRIES", 5 * MANY)
    single = KernelStack.from_arrays(SINGLE)
    double = KernelStack.from_arrays(SINGLE.astype(np.float64))
    columns = np.random.default_rng(0).normal(size=(MANY, n_columns))
    if transform is not None:
        single, double = transform().fit_transform(single), transform().fit_transform(double)
    indices = np.array([3, 0, 9])
    pairs = zip(
        computed(single, columns, indices), computed(double, columns, indices), strict=True
    )
    for results in pairs:
        assert results[0].dtype == np.float64
        assert_allclose(*results, rtol=1e-12, atol=1e-11)


def computed(stack, columns, indices):
    outs = [np.empty((MANY, MANY)), np.empty((MANY, MANY))]
    stack.combine_all(np.array([WEIGHTS, WEIGHTS[::-1]]), outs)
    return [
        stack.combine(WEIGHTS),
        *outs,
        stack.apply(columns),
        stack.apply_combined(WEIGHTS, columns),
        stack.apply_columns(indices, columns[:3]),
        stack.combine_block(WEIGHTS, indices),
        stack.kernel(0),
        stack.alignment(),
        stack.row_diag,
    ]


@pytest.mark.parametrize("estimator", [MKSVC, *slow(MKFDA)])
def test_estimators_learn_from_single_precision(estimator):
    labels = X[:, 0] > 0
    single = estimator(kernels="precomputed").fit(KernelStack.from_arrays(SINGLE), labels)
    raw = estimator(kernels="precomputed").fit(np.moveaxis(SINGLE, 0, -1), labels)
    double = estimator(kernels="precomputed").fit(KernelStack.from_arrays(SINGLE * 1.0), labels)
    assert_allclose(single.weights_, double.weights_, rtol=1e-6)
    assert_allclose(raw.weights_, double.weights_, rtol=1e-6)


def test_asymmetry_of_single_precision_is_rounding():
    matrix = (X @ X.T).astype(np.float32)
    matrix[5, 3] *= np.float32(1 + 2e-6)
    stack = KernelStack.from_arrays(matrix)
    assert_array_equal(stack.data[0], stack.data[0].T)
    with pytest.raises(ValueError, match="not symmetric"):
        KernelStack.from_arrays(matrix.astype(np.float64))
    matrix[5, 3] += 1.0
    with pytest.raises(ValueError, match="not symmetric"):
        KernelStack.from_arrays(matrix)


def test_negative_eigenvalues_are_found_in_single_precision():
    with pytest.raises(ValueError, match="not positive semi-definite"):
        KernelStack.from_arrays(planted(1e-2 * LARGEST).astype(np.float32), psd="raise")
