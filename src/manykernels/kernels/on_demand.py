"""Kernels that are computed on demand and not stored.

The matrices of 100 000 kernels of 208 rows take 35 GB. At p = 1 only a few hundred of them are
needed at a time: those that may have a nonzero weight. Of all others, only the gain is needed, one
number each. So a *visit* computes all kernels block by block and passes every block to a function
that extracts these numbers. Several threads share the work, each with memory for one block that it
reuses: allocating memory would take several times as long as computing the kernels.

Transforms are fitted to each kernel separately. Fitting a transform to kernels on demand only
records it; it is fitted to each block once the block has been computed. So no array is stored that
has an entry for every kernel and every sample.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import gen_batches

from ..utils.numerics import allocate, in_threads
from ..utils.sklearn import num_samples, safe_indexing
from .base import SharedComparisons
from .matching import row_names
from .operators import Guarantees, Positions, Samples, TransformedKernels
from .stack import KernelStack, chosen_kernels, positions
from .tables import SharedTable, naming
from .union import KernelUnion

if TYPE_CHECKING:
    from .transforms import StackTransform

# Entries of a block: 8 MiB of float64, which stay in a third-level cache between computation and
# use. Measured at 208 rows: 2**17 takes 1.5 times as long, 2**19 to 2**21 the same time.
_BLOCK_ENTRIES = 2**20

Work = Callable[[KernelStack, np.ndarray], None]


@dataclass
class _Facts:
    """Results of the first visit: constant kernels, and kernels erased by `n_steps` transforms."""

    constant: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    erased: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    n_steps: int = -1
    awaited: list[Callable[[], None]] = field(default_factory=list)


class OnDemandKernels:
    """Kernels of a fitted `union` between the m rows of the table `X`, computed on demand.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import RBFSubsets
    >>> from manykernels.kernels.on_demand import OnDemandKernels
    >>> from manykernels.kernels.transforms import Center
    >>> X = np.random.default_rng(0).standard_normal((20, 6))
    >>> kernels = OnDemandKernels(RBFSubsets(1000, [0.5, 2.0]).fit(X), X)
    >>> centred = Center().fit_transform(kernels)
    >>> centred.shape, centred.select([3, 1999])
    ((20, 20, 2000), KernelStack(2 kernels, 20 x 20: 'subset1:rbf(2)', 'subset999:rbf(2)'))
    """

    #: Read by losses and transforms; False for stored kernels.
    on_demand = True
    #: Rows and columns are the same samples.
    gram = True
    n_regions = 1

    def __init__(self, union: KernelUnion, X: object) -> None:
        self.union = union
        self.names = list(union.names_)
        self._shared = SharedTable.of(X)
        self._samples = row_names(self._shared.X)
        self._steps: tuple[tuple[Any, Any], ...] = ()
        self._facts = _Facts()

    @property
    def shape(self) -> tuple[int, int, int]:
        n_rows = int(num_samples(self._shared.X))
        return n_rows, n_rows, len(self.names)

    @property
    def n_kernels(self) -> int:
        return len(self.names)

    def __len__(self) -> int:
        return self.shape[0]

    # -- transforms ------------------------------------------------------------------------

    def after(
        self, transform: StackTransform, sample_weight: np.ndarray | None
    ) -> OnDemandKernels:
        """Return the transformed kernels; `transform` is fitted to each kernel on demand.

        Afterwards ``transform.select(kernels)`` is fitted to these kernels.
        """
        if not transform.of_each_kernel:
            raise ValueError(
                f"{type(transform).__name__} cannot be learnt from kernels that are computed on "
                "demand. Leave it out, or use fewer kernels, so that they fit into memory, with "
                "solver=Newton(on_demand=False)."
            )
        new = OnDemandKernels.__new__(OnDemandKernels)
        vars(new).update(vars(self))
        new._steps = (*self._steps, (clone(transform), sample_weight))
        transform.deferred_ = new
        transform.n_samples_fit_ = len(self)
        return new

    def fitted(self, kernels: np.ndarray) -> Any:
        """Return the last transform, fitted to some of the kernels."""
        return self._computed(kernels, None)[1][-1]

    def _computed(
        self, kernels: np.ndarray, out: np.ndarray | None
    ) -> tuple[KernelStack, list[Any], KernelStack]:
        """Return some kernels transformed, the fitted transforms, and the kernels before."""
        if out is None:
            out = allocate((len(kernels), *self.shape[:2]))
        plain = stack = self.union.gram_of(kernels, self._shared, out)
        steps = []
        for step, sample_weight in self._steps:
            steps.append(clone(step))
            stack = steps[-1].fit_transform(stack, sample_weight=sample_weight)
        return stack, steps, plain

    # -- computation -----------------------------------------------------------------------

    def visit(self, work: Work) -> None:
        """Call ``work(stack, positions)`` for blocks of all kernels, in several threads.

        The values of a stack are overwritten after the call.
        """
        size, facts = max(1, _BLOCK_ENTRIES // len(self) ** 2), self._facts
        memory, new = threading.local(), facts.n_steps < len(self._steps)
        constant, erased = np.zeros((2, self.n_kernels), dtype=bool)

        def visit_block(block: slice) -> None:
            if not hasattr(memory, "values"):
                memory.values = allocate((size, *self.shape[:2]))
            positions = np.arange(block.start, block.stop)
            stack, _, plain = self._computed(positions, memory.values[: len(positions)])
            if new:
                constant[positions[plain.without_variance()]] = True
                erased[positions] = stack._scale == 0.0
            work(stack, positions)

        in_threads(visit_block, list(gen_batches(self.n_kernels, size)))
        if new:
            facts.constant, facts.erased = np.flatnonzero(constant), np.flatnonzero(erased)
            facts.n_steps = len(self._steps)
            while facts.awaited:
                facts.awaited.pop()()

    def on_first_pass(self, callback: Callable[[], None]) -> None:
        """Call ``callback()`` after the first visit to the transformed kernels."""
        self._facts.awaited.append(callback)

    def select(self, kernels: ArrayLike) -> KernelStack:
        """Return some of the kernels, by position, in memory."""
        positions = np.asarray(kernels, dtype=np.intp)
        return self._computed(positions, None)[0].with_samples(self._samples)

    def kernel(self, which: int) -> np.ndarray:
        """Return one kernel matrix."""
        return self.select([which]).kernel(0)

    def combine(self, weights: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return ``Σ_j weights[j] K_j``; only kernels of nonzero weight are computed."""
        weights = np.asarray(weights)
        held = np.flatnonzero(weights)
        return self.select(held).combine(weights[held], out)

    def apply(self, columns: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the products ``K_j @ columns``, (n_kernels, m, n_columns): a large array."""
        products = allocate((self.n_kernels, *columns.shape)) if out is None else out

        def multiply(stack: KernelStack, positions: np.ndarray) -> None:
            products[positions] = stack.apply(columns)

        self.visit(multiply)
        return products

    # -- properties ------------------------------------------------------------------------

    @property
    def row_diag(self) -> np.ndarray:
        """Self-similarities of the samples, (n_kernels, m)."""
        diagonals = allocate((self.n_kernels, len(self)))

        def keep(stack: KernelStack, positions: np.ndarray) -> None:
            diagonals[positions] = stack.row_diag

        self.visit(keep)
        return diagonals

    def contributing(self, weights: np.ndarray) -> np.ndarray:
        """Return positions as :meth:`KernelStack.contributing` does."""
        held = np.flatnonzero(weights)
        if not len(held):
            return held
        return held[self.select(held).contributing(weights[held])]

    def without_variance(self) -> np.ndarray:
        """Return positions as :meth:`KernelStack.without_variance` does."""
        return self._known(0).constant

    def erased(self) -> np.ndarray:
        """Return the positions of kernels without variance, which a transform sets to zero."""
        return self._known(len(self._steps)).erased

    def _known(self, n_steps: int) -> _Facts:
        """Return the facts about the kernels after `n_steps` transforms; visit them if needed."""
        if self._facts.n_steps < n_steps:
            self.visit(lambda stack, positions: None)
        return self._facts


# -- Kernels of training rows, computed by columns ------------------------------------------------
#
# A stack of n kernels of m rows takes n·m² numbers: 30 GiB for 10 kernels of 20 000 rows. Solvers
# with ``by_columns`` need only a few columns at a time. Here every kernel is evaluated in tiles
# small enough for the cache of the processor. Kernels that are functions of the same distances
# share those of a tile, which are then dropped. Several threads compute tiles.
#
# Panels ``K_j[:, indices]`` are cached up to `cache_bytes`, and never evicted. A solver sweeps
# over all panels in turn, so the least recently used panel is the next one needed, and a cache
# that evicted it would never hit.
#
# Transforms are vectors, as in a stack; centring computes its means in one pass.


# Entries of a tile: 1 MiB of float64, so that distances and kernel values of a tile stay in a
# second-level cache.
_TILE_ENTRIES = 2**17
# Columns of a tile when all columns are needed; a tile then has 65 rows.
_TILE_COLUMNS = 2000

StreamedWork = Callable[[int, slice, np.ndarray], None]


class StreamedKernels(TransformedKernels):
    """Kernels of a fitted `union` between the m rows of the table `X`, computed by columns.

    At most `cache_bytes` of memory are used to cache panels; the default of 2 GiB holds all panels
    of one kernel of 16 000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import rbf_grid
    >>> from manykernels.kernels.on_demand import StreamedKernels
    >>> from manykernels.kernels.transforms import Center
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> streamed = StreamedKernels(rbf_grid([1, 2]).fit(X), X)
    >>> Center().fit_transform(streamed).kernel(1).round(2)
    array([[ 0.26,  0.05, -0.32],
           [ 0.05,  0.08, -0.13],
           [-0.32, -0.13,  0.45]])
    """

    def __init__(self, union: KernelUnion, X: object, *, cache_bytes: int = 2**31) -> None:
        self.union = union
        self.names = union.names_
        psd = all(kernel.is_psd for _, kernel in union.kernels_)
        self.guarantees = Guarantees(gram=True, psd=psd, psd_if_centered=psd)
        self._X = X
        self._diagonal = union.diag(X)
        self._scale = np.ones(len(self.names))
        self._rows = self._cols = Samples(self._diagonal)
        self.cache = PanelCache(cache_bytes)

    @property
    def shape(self) -> tuple[int, int, int]:
        n_kernels, n_rows = self._diagonal.shape
        return n_rows, n_rows, n_kernels

    def _without_offsets(self) -> StreamedKernels:
        raise ValueError(
            "Kernels that are computed by columns must be normalised by sample before centring."
        )

    def _apply_stored(
        self, indices: np.ndarray, coefficients: np.ndarray, *, keep: bool = True
    ) -> np.ndarray:
        panels = self.cache.panels(indices, self.n_kernels, len(self)) if keep else {}
        products = np.empty((self.n_kernels, len(self), coefficients.shape[1]))
        factor = 1.0 if self._cols.factor is None else self._cols.factor[:, indices, None]
        columns = np.broadcast_to(factor * coefficients, (self.n_kernels, *coefficients.shape))
        filled = [j for j, panel in panels.items() if panel.filled]
        for j in filled:
            products[j] = panels[j].values @ columns[j]
        missing = [j for j in range(self.n_kernels) if j not in filled]

        def multiply(j: int, rows: slice, tile: np.ndarray) -> None:
            products[j, rows] = tile @ columns[j]
            if j in panels:
                panels[j].values[rows] = tile

        self._visit(np.arange(len(self)), indices, missing, multiply)
        for panel in panels.values():
            panel.filled = True
        return products

    def _sum_stored(self, weights: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        total = np.zeros((len(rows), len(cols)))

        def add(j: int, batch: slice, tile: np.ndarray) -> None:
            tile *= weights[j]
            if self._rows.factor is not None and self._cols.factor is not None:
                tile *= self._rows.factor[j, rows[batch], None]
                tile *= self._cols.factor[j, cols]
            total[batch] += tile

        self._visit(rows, cols, np.flatnonzero(weights).tolist(), add)
        return total

    def apply(self, columns: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the products ``K_j @ columns``, (n_kernels, m, n_columns), in one pass."""
        columns = self._check_columns(columns)
        if out is None:
            # Each column is contiguous, as in the products of a stack.
            out = np.empty((self.n_kernels, columns.shape[1], len(self))).mT
        out[...] = 0.0
        for block in self._column_blocks():
            out += self._apply_stored(block, columns[block], keep=False)
        return self._transform_products(out, slice(None), columns)

    def combine(self, weights: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return ``Σ_j weights[j] K_j``, a matrix (m, m)."""
        weights = self._check_weights(weights)
        total = allocate(self.shape[:2]) if out is None else out
        for block in self._column_blocks():
            panel = self._sum_stored(weights * self._scale, np.arange(len(self)), block)
            total[:, block] = self._subtract_offsets(panel, weights, slice(None), block)
        return total

    def kernel(self, which: int) -> np.ndarray:
        """Return one kernel matrix (m, m)."""
        return self.combine(np.eye(self.n_kernels)[which])

    def __getitem__(self, key: tuple[object, ...]) -> KernelStack:
        """Return a stack of some rows and columns, ``streamed[np.ix_(rows, cols)]``."""
        rows, columns = (positions(index, len(self)) for index in key)
        gram = np.array_equal(rows, columns)
        others = None if gram else safe_indexing(self._X, columns)
        stack = self.union(safe_indexing(self._X, rows), others)
        return stack._changed(
            _scale=self._scale,
            _rows=replace(self._rows.take(rows), names=stack.row_samples),
            _cols=replace(self._cols.take(columns), names=stack.col_samples),
        )

    def _column_blocks(self) -> Iterable[np.ndarray]:
        blocks = gen_batches(len(self), _TILE_COLUMNS)
        return (np.arange(block.start, block.stop) for block in blocks)

    def _visit(
        self, rows: np.ndarray, columns: np.ndarray, kernels: list[int], work: StreamedWork
    ) -> None:
        """Call ``work(j, batch, values)`` for every kernel j and every tile ``rows[batch]``."""
        if not kernels:
            return
        chosen = SharedTable(safe_indexing(self._X, columns))
        position = np.full(len(self), -1)
        position[columns] = np.arange(len(columns))

        def visit_rows(batch: slice) -> None:
            evaluate = SharedComparisons(safe_indexing(self._X, rows[batch]), chosen)
            column = position[rows[batch]]
            same = np.flatnonzero(column >= 0)
            for j in kernels:
                name, kernel = self.union.kernels_[j]
                with naming(f"kernel {name!r}"):
                    tile = evaluate(kernel)
                # Between two tables, self-similarities have rounding errors, and lack the noise
                # that a kernel adds to single samples (WhiteKernel).
                tile[same, column[same]] = self._diagonal[j, rows[batch][same]]
                work(j, batch, tile)

        height = max(1, _TILE_ENTRIES // len(columns))
        in_threads(visit_rows, list(gen_batches(len(rows), height)))


@dataclass
class Panel:
    """Values of one kernel in some columns, valid once `filled`."""

    values: np.ndarray
    filled: bool = False


class PanelCache:
    """Cache of the first panels requested, up to `max_bytes`; `n_bytes` are in use."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = 0
        self._panels: dict[bytes, dict[int, Panel]] = {}

    def panels(self, indices: np.ndarray, n_kernels: int, n_rows: int) -> dict[int, Panel]:
        """Return the cached panels of these columns by kernel; new ones are not `filled`."""
        key = indices.tobytes()
        if key not in self._panels:
            size = 8 * n_rows * len(indices)
            room = min(n_kernels, (self.max_bytes - self.n_bytes) // size)
            shape = (n_rows, len(indices))
            self._panels[key] = {j: Panel(np.empty(shape)) for j in range(room)}
            self.n_bytes += room * size
        return self._panels[key]


# -- Kernels of regions ---------------------------------------------------------------------------
#
#     K_lj(r, c) = f_l(r) f_l(c) K_j(r, c)        for regions l and kernels j
#
# with factors f_l ≥ 0 that grow with the membership of a sample in region l. Such a kernel is
# positive semi-definite if K_j is. Only the kernels K_j and one vector of factors per region are
# stored, and the weighted sum ``Σ_lj β_lj K_lj = Σ_l f_l f_lᵀ ∘ Σ_j β_lj K_j`` takes one pass over
# the kernels.


# Entries of the sums of a block of rows, one sum per region: 16 MiB of float64, which stay in a
# third-level cache.
_REGIONAL_BLOCK_ENTRIES = 2**21


class RegionalKernels(TransformedKernels):
    """Kernels `base` in every region; kernel j of n in region l has the position ``l·n + j``.

    Parameters
    ----------
    base : KernelStack or StreamedKernels
    row_factors, col_factors : ndarray of shape (n_regions, rows) and (n_regions, cols)
        Factors f of the samples along the rows and the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.kernels.on_demand import RegionalKernels
    >>> stack = KernelStack.from_arrays({"one": np.ones((3, 3))})
    >>> factors = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> regional = RegionalKernels(stack, factors, factors)
    >>> regional.names
    ['one [0]', 'one [1]']
    >>> regional.combine([1.0, 2.0])
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 2.]])
    """

    def __init__(
        self, base: KernelStack | StreamedKernels, row_factors: np.ndarray, col_factors: np.ndarray
    ) -> None:
        n_regions, n_kernels = len(row_factors), base.n_kernels
        self.base, self._row_factors, self._col_factors = base, row_factors, col_factors
        #: Region, and position in `base`, of every kernel.
        self.regions = np.repeat(np.arange(n_regions), n_kernels)
        self.sources = np.tile(np.arange(n_kernels), n_regions)
        self.names = [f"{name} [{region}]" for region in range(n_regions) for name in base.names]
        # Products with kernels that are only PSD after centring need not be PSD.
        self.guarantees = base.guarantees.of_rescaled()
        self._scale = np.ones(len(self.names))
        self._factor_errors = np.zeros(row_factors.shape)
        self._rows = Samples(self._diagonal(base.row_diag, row_factors))
        self._cols = Samples(self._diagonal(base.col_diag, col_factors))

    def _diagonal(self, diagonal: np.ndarray | None, factors: np.ndarray) -> np.ndarray | None:
        if diagonal is None:
            return None
        return factors[self.regions] ** 2 * diagonal[self.sources]

    def with_factor_errors(self, errors: np.ndarray) -> RegionalKernels:
        """Return the kernels with relative errors of the factors of the rows."""
        return self._changed(_factor_errors=errors)

    def output_errors(self, weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Propagate the errors of the row factors to ``Σ_j weights[j] K_j @ columns``."""
        squares = np.zeros((len(self), columns.shape[1]))
        if self._factor_errors.any():
            table = self._by_region(weights * self._scale)
            row_errors = self._factor_errors * self._row_factors
            for region_weights, errors, factor in zip(
                table, row_errors, self._col_factors, strict=True
            ):
                outputs = self.base.apply_combined(region_weights, factor[:, None] * columns)
                squares += (errors[:, None] * outputs) ** 2
        return np.sqrt(squares)

    def _sizes(self) -> np.ndarray:
        """Include the offsets of `base`, if that is centred."""
        sizes = super()._sizes()
        if self.base._rows.offset is None:
            return sizes
        offsets = np.abs(self.base._rows.offset[self.sources]) * np.abs(self._scale[:, None])
        larger: np.ndarray = sizes + 2.0 * self._row_factors[self.regions] ** 2 * offsets
        return larger

    @property
    def n_regions(self) -> int:
        return len(self._row_factors)

    @property
    def resolution(self) -> float:
        return float(self.base.resolution)

    @property
    def row_shares(self) -> np.ndarray:
        """Squared factors f² of the rows, (rows, n_regions)."""
        return self._row_factors.T**2

    @property
    def shape(self) -> tuple[int, int, int]:
        rows, cols, _ = self.base.shape
        return rows, cols, len(self.names)

    def _without_offsets(self) -> RegionalKernels:
        raise ValueError("Kernels of regions must be normalised by sample before centring.")

    def _by_region(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights of the kernels of `base` in every region, (n_regions, n)."""
        table = np.zeros((self.n_regions, self.base.n_kernels))
        table[self.regions, self.sources] = weights
        return table

    # -- sums ------------------------------------------------------------------------------

    def combine(self, weights: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return ``Σ_j weights[j] K_j``, in one pass over the kernels of `base`."""
        weights = self._check_weights(weights)
        kept = np.zeros_like(weights)
        active = self.contributing(weights)
        kept[active] = weights[active]
        total = allocate(self.shape[:2]) if out is None else out
        table = self._by_region(kept * self._scale)
        for rows, sums in self._sums(table):
            block = total[rows]
            block[...] = 0.0
            factors = zip(self._row_factors, self._col_factors, sums, strict=True)
            for row_factor, col_factor, term in factors:
                # The product of the factors first: it is exactly symmetric, and so is the result.
                term *= row_factor[rows, None] * col_factor
                block += term
            self._subtract_offsets(block, kept, rows, slice(None))
        return total

    def _sums(self, table: np.ndarray) -> Iterator[tuple[slice, list[np.ndarray]]]:
        """Yield weighted sums of the kernels of `base`, by blocks of rows, one per region."""
        n_rows, n_cols, n_kernels = self.base.shape
        if not isinstance(self.base, KernelStack):
            yield slice(0, n_rows), [self.base.combine(weights) for weights in table]
            return
        height = max(1, _REGIONAL_BLOCK_ENTRIES // (n_cols * len(table)))
        every = np.arange(n_kernels)
        for rows in gen_batches(n_rows, height):
            sums = list(np.empty((len(table), rows.stop - rows.start, n_cols)))
            self.base.rows(rows, every).combine_all(table, sums)
            yield rows, sums

    def combine_all(self, weights: np.ndarray, outs: list[np.ndarray]) -> None:
        """Write the weighted sum of row r of `weights` into ``outs[r]``."""
        for row, out in zip(weights, outs, strict=True):
            self.combine(row, out)

    def kernel(self, which: int | str) -> np.ndarray:
        """Return one kernel matrix (rows, cols), by name or position."""
        j = int(chosen_kernels(which, self.names)[0]) if isinstance(which, str) else which
        region = self.regions[j]
        factors = np.multiply.outer(self._row_factors[region], self._col_factors[region])
        matrix = factors * self.base.kernel(int(self.sources[j]))
        matrix *= self._scale[j]
        unit = np.eye(self.n_kernels)[j]
        return self._subtract_offsets(matrix, unit, slice(None), slice(None))

    # -- products --------------------------------------------------------------------------

    def apply(self, columns: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the products ``K_j @ columns``, shape (n_kernels, rows, n_columns)."""
        columns = self._check_columns(columns)
        products = self.base.apply(self._spread(columns, slice(None)))
        return self._transform_products(self._gathered(products, out), slice(None), columns)

    def _spread(self, columns: np.ndarray, indices: Positions) -> np.ndarray:
        """Return ``f_l ∘ columns`` of every region, side by side."""
        factors = self._col_factors[:, indices].T
        return np.reshape(factors[:, :, None] * columns[:, None], (len(columns), -1))

    def _gathered(self, products: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the products of the kernels, from those of `base` with the result of `_spread`.

        Each column is contiguous, as in the products of a stack.
        """
        n_kernels, n_rows, _ = products.shape
        by_region = products.mT.reshape(n_kernels, self.n_regions, -1, n_rows)
        chosen = by_region[self.sources, self.regions]
        factors = self._row_factors[self.regions, None]
        return np.multiply(chosen, factors, out=chosen if out is None else out.mT).mT

    def apply_combined(self, weights: ArrayLike, columns: np.ndarray) -> np.ndarray:
        """Return ``Σ_j weights[j] K_j @ columns`` without forming the sum of the kernels."""
        weights = self._check_weights(weights)
        columns = self._check_columns(columns)
        total = np.zeros((len(self), columns.shape[1]))
        table = self._by_region(weights * self._scale)
        regions = zip(self._row_factors, self._col_factors, table, strict=True)
        for row_factor, col_factor, region_weights in regions:
            products = self.base.apply_combined(region_weights, col_factor[:, None] * columns)
            total += row_factor[:, None] * products
        if self._rows.offset is not None and self._cols.offset is not None:
            total -= np.outer(weights @ self._rows.offset, columns.sum(axis=0))
            total -= (weights @ self._cols.offset) @ columns
        return total

    # -- blocks and selections -------------------------------------------------------------

    def _apply_stored(self, indices: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        products = self.base.apply_columns(indices, self._spread(coefficients, indices))
        return self._gathered(products)

    def _sum_stored(self, weights: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        block, base = np.zeros((len(rows), len(cols))), self.base
        regions = zip(self._row_factors, self._col_factors, self._by_region(weights), strict=True)
        for row_factor, col_factor, region_weights in regions:
            plain = base._sum_stored(region_weights * base._scale, rows, cols)
            plain = base._subtract_offsets(plain, region_weights, rows, cols)
            block += np.outer(row_factor[rows], col_factor[cols]) * plain
        return block

    def __getitem__(self, key: object) -> RegionalKernels:
        """Return the kernels of some rows and columns, ``regional[np.ix_(rows, cols)]``."""
        keys = key if isinstance(key, tuple) else (key, slice(None))
        rows, cols = (positions(index, n) for index, n in zip(keys, self.shape[:2], strict=True))
        gram = self.gram and np.array_equal(rows, cols)
        return self._changed(
            base=self.base[np.ix_(rows, cols)],
            guarantees=self.guarantees.of_part(gram=gram),
            _row_factors=self._row_factors[:, rows],
            _factor_errors=self._factor_errors[:, rows],
            _col_factors=self._col_factors[:, cols],
            _rows=self._rows.take(rows),
            _cols=self._cols.take(cols),
        )

    def select(self, kernels: object) -> RegionalKernels:
        """Return some of the kernels, selected by names, positions, a slice or a mask."""
        chosen = chosen_kernels(kernels, self.names)
        return self._changed(
            names=[self.names[j] for j in chosen],
            regions=self.regions[chosen],
            sources=self.sources[chosen],
            _scale=self._scale[chosen],
            _rows=self._rows.take(chosen, axis=0),
            _cols=self._cols.take(chosen, axis=0),
        )
