"""Kernels of regions: the same numbers as explicit matrices, none of which is stored."""

from __future__ import annotations

import numpy as np
import pytest

from manykernels import KernelStack, KernelUnion, rbf_grid
from manykernels.kernels import Polynomial, on_demand
from manykernels.kernels.on_demand import RegionalKernels, StreamedKernels
from manykernels.kernels.stack import check_stack
from manykernels.kernels.transforms import Center, Spherical, preparation

M, L = 40, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((M, 3))
UNION = KernelUnion([*rbf_grid([0.5, 2]).kernels, ("poly", Polynomial(2))]).fit(X)
FACTORS = np.sqrt(RNG.dirichlet(np.ones(L), M).T)
COLUMNS = RNG.standard_normal((M, 2))
WEIGHTS = np.array([0.3, 0.0, 1.2, 0.0, 0.0, 0.0, 2.0, 1e-3, 0.5])


@pytest.fixture(params=["stored", "spherical", "streamed"])
def base(request):
    if request.param == "streamed":
        return StreamedKernels(UNION, X)
    stack = UNION(X)
    return Spherical().fit_transform(stack) if request.param == "spherical" else stack


@pytest.fixture(params=[2**21, 300], ids=["one block", "many blocks"], autouse=True)
def blocks(request, monkeypatch):
    monkeypatch.setattr(on_demand, "_BLOCK_ENTRIES", request.param)


def explicit(base, rows, cols):
    """All matrices f_l f_lᵀ ∘ K_j, region by region."""
    return np.array(
        [
            np.outer(own, others) * base.kernel(j)
            for own, others in zip(rows, cols, strict=True)
            for j in range(base.n_kernels)
        ]
    )


def same(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def check(found, matrices):
    """Everything that losses and predictions ask for, against explicit matrices."""
    n = len(matrices)
    weights = WEIGHTS[:n]
    total = np.einsum("j,jrc->rc", weights, matrices)
    assert found.shape == (*matrices.shape[1:], n)
    same(found.combine(weights), total)
    out = np.empty(matrices.shape[1:])
    assert found.combine(weights, out=out) is out
    same(out, total)
    columns = COLUMNS[: matrices.shape[2]]
    products = found.apply(columns)
    same(products, matrices @ columns)
    assert products.mT.flags.c_contiguous
    assert np.shares_memory(found.apply(2 * columns, out=products), products)
    same(products, matrices @ (2 * columns))
    same(found.apply(columns[:, :1]), matrices @ columns[:, :1])
    for j in range(n):
        same(found.kernel(j), matrices[j])
    if found.row_diag is not None and found.gram:
        same(found.row_diag, np.einsum("jii->ji", matrices))


def test_the_kernels_of_every_region(base):
    found = RegionalKernels(base, FACTORS, FACTORS)
    matrices = explicit(base, FACTORS, FACTORS)
    check(found, matrices)
    assert found.n_regions == L
    assert found.names[:4] == [*(f"{name} [0]" for name in base.names), f"{base.names[0]} [1]"]
    same(found.kernel(found.names[5]), matrices[5])
    total = found.combine(WEIGHTS)
    if isinstance(base, KernelStack):
        np.testing.assert_array_equal(total, total.T)
    indices = np.array([7, 0, 33])
    same(
        found.apply_columns(indices, COLUMNS[indices]), matrices[:, :, indices] @ COLUMNS[indices]
    )
    same(
        found.combine_block(WEIGHTS, indices),
        np.einsum("j,jrc->rc", WEIGHTS, matrices)[np.ix_(indices, indices)],
    )


def test_centring_and_scaling_on_top(base):
    sample_weight = np.linspace(0.5, 2.0, M)
    found = RegionalKernels(base, FACTORS, FACTORS)
    explicit_stack = KernelStack.from_arrays(explicit(base, FACTORS, FACTORS))
    chains = [preparation("multiplicative") for _ in range(2)]
    centred = chains[0].fit_transform(found, sample_weight=sample_weight)
    expected = chains[1].fit_transform(explicit_stack, sample_weight=sample_weight)
    assert centred.centered
    assert centred.guarantees.psd
    check(centred, np.array([expected.kernel(j) for j in range(9)]))
    indices = np.array([5, 1, 20])
    for method in ("apply_columns", "combine_block"):
        arguments = {
            "apply_columns": (indices, COLUMNS[indices]),
            "combine_block": (WEIGHTS, indices),
        }[method]
        same(getattr(centred, method)(*arguments), getattr(expected, method)(*arguments))
    same(
        centred.form_errors(COLUMNS, COLUMNS),
        expected.form_errors(COLUMNS, COLUMNS),
    )
    np.testing.assert_array_equal(centred.contributing(WEIGHTS), expected.contributing(WEIGHTS))
    outs = [np.empty((M, M)) for _ in range(2)]
    centred.combine_all(np.array([WEIGHTS, WEIGHTS[::-1]]), outs)
    same(outs[1], expected.combine(WEIGHTS[::-1]))


def test_parts_of_centred_regional_kernels(base):
    found = Center().fit_transform(RegionalKernels(base, FACTORS, FACTORS))
    whole = np.array([found.kernel(j) for j in range(9)])
    rows, kernels = np.array([3, 9, 11, 2]), np.array([8, 0, 4])
    check(found.select(kernels), whole[kernels])
    part = found[np.ix_(rows, rows)]
    assert part.gram
    assert not part.centered
    check(part, whole[:, rows][:, :, rows])
    check(found.select(kernels)[np.ix_(rows, rows)], whole[kernels][:, rows][:, :, rows])


@pytest.mark.parametrize("centred", [False, True])
def test_a_block_of_new_samples(centred):
    rng = np.random.default_rng(1)
    new, factors = rng.standard_normal((7, 3)), np.sqrt(rng.dirichlet(np.ones(L), 7).T)
    center = Center().fit(RegionalKernels(UNION(X), FACTORS, FACTORS))
    found = RegionalKernels(UNION(new, X), factors, FACTORS)
    matrices = explicit(UNION(new, X), factors, FACTORS)
    if centred:
        explicit_stack = KernelStack.from_arrays(explicit(UNION(X), FACTORS, FACTORS))
        found = center.transform(found)
        expected = Center().fit(explicit_stack)
        block = expected.transform(KernelStack.from_arrays(matrices, gram=False))
        matrices = np.array([block.kernel(j) for j in range(9)])
    check(found, matrices)
    same(
        found.apply_combined(WEIGHTS, COLUMNS),
        np.einsum("j,jrc->rc", WEIGHTS, matrices) @ COLUMNS,
    )


def test_no_kernel_of_a_region_is_stored():
    found = RegionalKernels(UNION(X), FACTORS, FACTORS)
    found.combine(WEIGHTS)
    found.apply(COLUMNS)
    arrays = [value for value in vars(found).values() if isinstance(value, np.ndarray)]
    vectors = [found._rows.diagonal, found._cols.diagonal]
    assert max(array.size for array in [*arrays, *vectors]) <= len(found.names) * M
    assert found.base.data.size == UNION(X).data.size


def test_kernels_that_are_definite_after_centring_only_give_no_guarantee():
    """Minus the squared distances: centred they are definite, but not with factors before."""
    squares = np.sum((X[:, None] - X) ** 2, axis=2)
    stack = check_stack(KernelStack(-squares[None], ["far"], gram=True), centered=True)
    assert stack.guarantees.psd_if_centered
    found = RegionalKernels(stack, FACTORS, FACTORS)
    assert not found.guarantees.psd_if_centered
    centred = Center().fit_transform(found)
    assert min(np.linalg.eigvalsh(centred.kernel(j))[0] for j in range(L)) < -0.1


def test_they_are_normalised_by_sample_before_centring_only():
    centred = Center().fit_transform(RegionalKernels(UNION(X), FACTORS, FACTORS))
    with pytest.raises(ValueError, match="by sample before centring"):
        Spherical().fit_transform(centred)


def test_products_with_a_sum_that_is_not_formed(base):
    regional = Center().fit_transform(RegionalKernels(base, FACTORS, FACTORS))
    same(regional.apply_combined(WEIGHTS, COLUMNS), regional.combine(WEIGHTS) @ COLUMNS)


def test_rounding_errors_of_a_centred_base():
    """They are those of the kernels before centring."""
    rows = X + 1e5
    matrix = rows @ rows.T
    centred = Center().fit_transform(KernelStack.from_arrays([matrix]))
    regional = RegionalKernels(centred, FACTORS, FACTORS)
    wide = matrix.astype(np.longdouble)
    wide = wide - wide.mean(axis=0)
    wide = wide - wide.mean(axis=1)[:, None]
    v = np.linspace(-1, 1, len(X))[:, None]
    exact = [float((f * v[:, 0]) @ wide @ (f * v[:, 0])) for f in FACTORS.astype(np.longdouble)]
    computed = np.einsum("jmk,mk->j", regional.apply(v), v)
    errors = regional.form_errors(v, v)
    assert np.all(np.abs(computed - exact) <= 10.0 * errors)
    np.testing.assert_allclose(2.0 * errors, regional.scaled(np.full(L, 2.0)).form_errors(v, v))
