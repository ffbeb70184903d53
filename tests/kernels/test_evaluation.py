"""Kernels written into their places tile by tile."""

import pickle
import tracemalloc
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from manykernels import MKFDA
from manykernels.estimators import kernel_data
from manykernels.kernels import (
    RBF,
    ChiSquare,
    Cosine,
    Jaccard,
    KernelUnion,
    Laplacian,
    Linear,
    Polynomial,
    base,
    tables,
)
from manykernels.kernels.base import (
    ChiSquareDistances,
    Cosines,
    InnerProducts,
    ManhattanDistances,
    SquaredDistances,
)
from manykernels.kernels.tables import SharedTable
from manykernels.utils import numerics
from tests.problems import slow

RNG = np.random.default_rng(0)
TABLE = RNG.gamma(1.0, size=(23, 4))
OTHER = RNG.gamma(1.0, size=(11, 4))
KERNELS = {
    "linear": Linear(),
    "narrow": RBF("median", 0.5),
    "wide": RBF("median", 2.0),
    "cubic": Polynomial(3, "scale"),
    "laplacian": Laplacian(),
    "first": Laplacian("median").on([0, 2]),
    "cosine": Cosine(),
    "chi2": ChiSquare("median"),
    "scaled": RBF().after(StandardScaler()),
}
NAIVE = {
    InnerProducts: lambda x, y: x @ y,
    Cosines: lambda x, y: x @ y / np.sqrt((x @ x) * (y @ y)),
    SquaredDistances: lambda x, y: ((x - y) ** 2).sum(),
    ManhattanDistances: lambda x, y: np.abs(x - y).sum(),
    ChiSquareDistances: lambda x, y: ((x - y) ** 2 / (x + y)).sum(),
}
every_comparison = pytest.mark.parametrize("kind", NAIVE, ids=lambda kind: kind.__name__)


# -- comparisons ----------------------------------------------------------------------------


@every_comparison
@pytest.mark.parametrize("gram", [True, False], ids=["gram", "two tables"])
def test_tiles_are_what_the_formula_says(kind, gram):
    Y = TABLE if gram else OTHER
    expected = np.array([[NAIVE[kind](x, y) for y in Y] for x in TABLE])
    comparison = kind(TABLE, None if gram else OTHER)
    assert comparison.shape == expected.shape
    assert_allclose(comparison.whole(), expected, rtol=1e-12, atol=1e-14)
    for rows, columns in [(slice(3, 9), slice(5, 11)), (slice(0, 4), slice(7, 8))]:
        tile = comparison.tile(rows, columns)
        assert_allclose(tile, expected[rows, columns], rtol=1e-12, atol=1e-14)


@every_comparison
def test_bounds_hold(kind):
    comparison = kind(TABLE, OTHER)
    low, high = comparison.bounds
    assert low <= comparison.whole().min()
    assert comparison.whole().max() <= high


@pytest.mark.parametrize("kind", [InnerProducts, Cosines, SquaredDistances, ManhattanDistances])
def test_sparse_tables(kind):
    expected = kind(TABLE, OTHER)
    comparison = kind(sparse.csr_array(TABLE), sparse.csr_array(OTHER))
    assert_allclose(comparison.whole(), expected.whole(), rtol=1e-12, atol=1e-14)
    assert_allclose(comparison.bounds, kind(TABLE, OTHER).bounds, rtol=10)


def test_a_row_has_no_distance_from_itself_wherever_the_tile_begins():
    far = 1e6 + TABLE
    tile = SquaredDistances(far, None).tile(slice(3, 9), slice(5, 11))
    assert_array_equal(tile[[2, 3, 4, 5], [0, 1, 2, 3]], 0.0)


# -- tiles ----------------------------------------------------------------------------------


@pytest.mark.parametrize("Y", [None, OTHER], ids=["gram", "two tables"])
@pytest.mark.parametrize("height", [*slow(1), 5, 22, 23])
def test_the_size_of_tiles_changes_rounding_only(monkeypatch, height, Y):
    union = KernelUnion(KERNELS).fit(TABLE)
    expected = union(TABLE, Y).data
    monkeypatch.setattr(base, "TILE_ROWS", height)
    stack = union(TABLE, Y)
    assert_allclose(stack.data, expected, rtol=1e-13, atol=1e-14)
    if Y is None:
        assert_array_equal(stack.data, stack.data.transpose(0, 2, 1))


def test_the_number_of_threads_changes_nothing(monkeypatch):
    union = KernelUnion(KERNELS).fit(TABLE)
    monkeypatch.setattr(base, "TILE_ROWS", 3)
    results = []
    for n_threads in (1, 3):
        monkeypatch.setattr(numerics, "openmp_n_threads", lambda n=n_threads, **_: n)
        results.append(union(TABLE).data)
    assert_array_equal(*results)


def test_an_error_in_a_thread_is_raised(monkeypatch):
    monkeypatch.setattr(base, "TILE_ROWS", 3)
    monkeypatch.setattr(numerics, "openmp_n_threads", lambda **_: 2)

    class Broken(RBF):
        def _from_compared(self, values, out):
            raise ZeroDivisionError("of this kernel")

    with pytest.raises(ZeroDivisionError, match="of this kernel"):
        Broken(1.0)(TABLE)


def test_one_triangle_and_once_for_all_kernels(monkeypatch):
    places = []

    class Noted(SquaredDistances):
        def tile(self, rows, columns):
            places.append((rows.start, columns.start))
            return super().tile(rows, columns)

    union = KernelUnion({str(w): RBF(1.0, w) for w in (1.0, 2.0, 3.0)}).fit(TABLE)
    monkeypatch.setattr(RBF, "_comparison", Noted)
    monkeypatch.setattr(base, "TILE_ROWS", 10)
    union(TABLE)
    assert places == [(0, 0), (0, 10), (0, 20), (10, 10), (10, 20), (20, 20)]


def test_no_second_matrix_is_allocated():
    X = np.random.default_rng(1).standard_normal((1500, 3))
    union = KernelUnion({"linear": Linear(), "a": RBF(1.0), "b": RBF(2.0)}).fit(X)
    tracemalloc.start()
    stack = union(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Besides the stack, some tiles and tables: less than half a matrix.
    assert peak < stack.data.nbytes + stack.data[0].nbytes / 2


def test_a_formula_of_its_own_is_respected():
    class Doubled(RBF):
        def _evaluate(self, X, Y):
            return 2.0 * super()._evaluate(X, Y)

    union = KernelUnion({"once": RBF(1.0), "twice": Doubled(1.0)}).fit(TABLE)
    once, twice = union(TABLE).data
    assert_array_equal(twice, 2.0 * once)
    assert_array_equal(Doubled(1.0)(TABLE, OTHER), 2.0 * RBF(1.0)(TABLE, OTHER))


@pytest.mark.parametrize("degree", range(1, 9))
def test_powers_by_products(degree):
    kernel = Polynomial(degree, 0.7, -1.5)
    assert_allclose(kernel(TABLE, OTHER), (0.7 * TABLE @ OTHER.T - 1.5) ** degree, rtol=1e-13)


# -- finite values --------------------------------------------------------------------------


def test_kernels_that_cannot_overflow_are_not_checked(monkeypatch):
    def fail(matrix, name):
        raise AssertionError(f"looked through {name}")

    monkeypatch.setattr(base, "check_finite", fail)
    assert KernelUnion({**KERNELS}).fit(TABLE)(TABLE).names == list(KERNELS)


LARGE = np.array([[1e308, 1e308], [-1e308, 1e308], [0.0, 1.0]])


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2, 1.0), RBF(1.0)])
def test_overflow_is_refused_by_name(kernel):
    with pytest.raises(ValueError, match=r"kernel 'big': .* not finite"):
        KernelUnion({"big": kernel}).fit(LARGE)(LARGE)


def test_distances_that_overflow_are_no_similarity():
    assert np.isfinite(Laplacian(1e-300)(LARGE)).all()


def test_similarities_stay_above_denormal_numbers():
    K = RBF(1.0)(np.array([[0.0], [26.8], [27.2], [30.0], [1e5]]))
    assert (K >= 1e-305).all()
    assert (K[0, 1:] < 1e-303).all()


# -- what kernels share of a table ----------------------------------------------------------


def test_made_once():
    table, calls = SharedTable(TABLE), []
    assert [table.once("a", lambda: calls.append(1) or 5) for _ in range(3)] == [5, 5, 5]
    assert calls == [1]
    assert SharedTable.of(table) is table


def test_names_are_looked_up_once_for_each_table(monkeypatch):
    calls = []
    places = tables._places
    monkeypatch.setattr(tables, "_places", lambda frame: calls.append(frame) or places(frame))
    frame, new = (pd.DataFrame(X, columns=list("abcd")) for X in (TABLE, OTHER))
    kernels = {"one": RBF().on(["a", "b"]), "two": RBF().on(["c"]), "sum": Linear().on(["d", "a"])}
    union = KernelUnion(kernels).fit(frame)
    assert len(calls) == 1
    union(new, frame)
    assert [len(table) for table in calls[1:]] == [len(OTHER), len(TABLE)]


def test_checks_of_one_kernel_do_not_serve_another():
    X = pd.DataFrame({"a": [0.5, 1.0], "b": [1.0, 2.0]})
    union = KernelUnion({"numbers": Linear(), "bits": Jaccard()})
    with pytest.raises(ValueError, match=r"kernel 'bits': .* 0 or 1"):
        union.fit(X)


class Counted(TransformerMixin, BaseEstimator):
    """A transformer that counts what it is asked for."""

    calls: ClassVar[list] = []

    def __init__(self, factor=1.0, random_state=0):
        self.factor = factor
        self.random_state = random_state

    def fit(self, X, y=None):
        self.calls.append("fit")
        self.fitted_ = True
        return self

    def transform(self, X):
        self.calls.append(f"transform {len(X)}")
        return self.factor * np.asarray(X)


@pytest.fixture
def calls():
    Counted.calls.clear()
    return Counted.calls


def test_equal_transformers_are_fitted_and_applied_once(calls):
    kernels = [Linear(), RBF(), RBF(width=2.0), Laplacian(), Linear() + RBF()]
    union = KernelUnion([(str(j), kernel.after(Counted(3.0))) for j, kernel in enumerate(kernels)])
    union.fit(TABLE)
    assert calls == ["fit", f"transform {len(TABLE)}"]
    calls.clear()
    stack = union(OTHER, TABLE)
    assert sorted(calls) == [f"transform {len(OTHER)}", f"transform {len(TABLE)}"]
    for j, kernel in enumerate(kernels):
        alone = kernel.after(FunctionTransformer(lambda X: 3.0 * X)).fit(TABLE)
        assert_allclose(stack.data[j], alone(OTHER, TABLE), rtol=1e-12)


@pytest.mark.parametrize(
    "other",
    [
        RBF().after(Counted(2.0)),
        RBF().on([0, 1]).after(Counted()),
        RBF().after(Counted(random_state=None)),
    ],
    ids=["other parameters", "other columns", "other random numbers"],
)
def test_other_transformers_are_fitted_anew(calls, other):
    KernelUnion({"one": RBF().after(Counted()), "two": other}).fit(TABLE)
    assert calls.count("fit") == 2


def test_training_rows_are_transformed_once_for_all_blocks(calls, monkeypatch):
    monkeypatch.setattr(kernel_data, "BLOCK_ENTRIES", 4 * 2 * len(TABLE))
    y = np.arange(len(TABLE)) % 2
    kernels = {"a": RBF().after(Counted()), "b": Linear().after(Counted())}
    model = MKFDA(kernels, p=2.0).fit(TABLE, y)
    assert calls == ["fit", f"transform {len(TABLE)}"]
    calls.clear()
    decisions = model.decision_function(OTHER)
    assert calls.count(f"transform {len(TABLE)}") == 1
    assert len(calls) > 2
    restored = pickle.loads(pickle.dumps(model))
    assert_array_equal(restored.decision_function(OTHER), decisions)


def test_what_is_shared_is_not_saved():
    y = np.arange(len(TABLE)) % 2
    model = MKFDA(RBF().after(StandardScaler())).fit(TABLE, y)
    before = len(pickle.dumps(model))
    model.predict(OTHER)
    assert len(pickle.dumps(model)) == before
