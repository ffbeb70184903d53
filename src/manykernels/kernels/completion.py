"""Completion of kernels that some samples lack.

A sample lacks a kernel if its whole row and column of it, diagonal included, are NaN. Let φ(x) be
the images in the feature space of one kernel, and let the training samples that have it have the
(weighted) mean μ. A completion replaces the image of every sample x by

    ψ(x) = μ + s(x) (φ(x) − μ)                   if x has the kernel,
    ψ(x) = μ + s(x) Σ_i w_i(x) (φ(x_i) − μ)      if x lacks it,

with training samples x_i that have the kernel. Both are sums of images whose coefficients add up
to one, so the completed kernels ⟨ψ(x), ψ(x')⟩ are positive semi-definite, or become so by
centring, whenever the original ones are, and they are defined for new samples. A sample with all
kernels is unchanged: s = 1 and ψ = φ.

* :class:`MeanCompletion`: ``w = 0``, the image is the mean.
* :class:`ConditionalCompletion`: w(x) is a kernel ridge regression of φ on the kernels of the
  other views.

The factor s preserves the distance of a sample from the mean. An imputed image is nearer to the
mean than an observed one, so a sample with few views would be nearer to a decision boundary than
others for this reason alone. Let ρ_v(x) be the known share of the squared distance from the mean
in the kernels of view v. Then

    s(x)² = (number of views) / Σ_v ρ_v(x).

ρ is 1 for an observed view. For an imputed image at the squared distance l from the mean, with an
expected squared error e, it is l/(l + e): 0 for the mean, 1 for a reconstruction without error.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..utils.numerics import ACCUMULATED, ROUNDING, allocate
from ..utils.sklearn import safe_indexing, sample_weights
from ..utils.storable import storable
from .adapters import as_kernel
from .base import Kernel
from .checks import check_stack, symmetrize
from .matching import row_names, shown
from .operators import Samples
from .stack import KernelStack
from .tables import Columns, SharedTable, absent_rows, as_table, column_positions, select_columns
from .transforms import Chain, StackTransform, preparation
from .views import are_views, as_views

# -- Kernels that some rows lack ------------------------------------------------------------------


class PartialKernel(Kernel):
    """Base class of kernels that some rows lack: their rows and columns are NaN.

    A subclass defines which rows have the kernel. Its ``fit`` sets `kernel_`, fitted on these
    rows.
    """

    kernel: Kernel
    kernel_: Kernel

    @property
    def is_psd(self) -> bool:
        return self.kernel.is_psd

    @abstractmethod
    def _rows(self, X: SharedTable) -> tuple[np.ndarray, SharedTable]:
        """Return a mask of the rows that have the kernel, and the shared table of these rows."""

    @abstractmethod
    def _explaining(self) -> AbstractContextManager[None]:
        """Return a context manager that extends the error messages of the kernel."""

    def __call__(self, X: object, Y: object = None) -> np.ndarray:
        """Evaluate the kernel between the rows of `X` and those of `Y`, or of `X` again."""
        check_is_fitted(self)
        rows, left = self._rows(SharedTable.of(X))
        columns, right = (rows, None) if Y is None else self._rows(SharedTable.of(Y))
        K = np.full((len(rows), len(columns)), np.nan)
        if rows.any() and columns.any():
            with self._explaining():
                known = self.kernel_(left, right)
            if known.shape == K.shape:
                return known
            K[np.ix_(rows, columns)] = known
        return K

    def diag(self, X: object) -> np.ndarray:
        """Return ``k(x, x)`` of the rows of `X`; NaN for rows that lack the kernel."""
        check_is_fitted(self)
        rows, known = self._rows(SharedTable.of(X))
        diagonal = np.full(len(rows), np.nan)
        if rows.any():
            with self._explaining():
                diagonal[rows] = self.kernel_.diag(known)
        return diagonal

    def _evaluate(self, X: object, Y: object) -> np.ndarray:
        return self(X, Y)

    def _compared(self, X: object, Y: object) -> Any:
        check_is_fitted(self)
        rows, left = self._rows(SharedTable.of(X))
        columns, right = (rows, None) if Y is None else self._rows(SharedTable.of(Y))
        if not (rows.all() and columns.all()):
            return None  # rows that lack the kernel cannot be compared
        with self._explaining():
            return self.kernel_._compared(left, right)


# -- Reconstruction of images by kernel ridge regression ------------------------------------------
#
# Let K be a centred kernel with images φ, known for some training samples, and O a kernel of the
# same samples that is known for all. The regression of φ on the images of O, with sample weights
# W = diag(w) and an intercept, is
#
#     φ̂(x) = Σ_i w_i(x) φ(x_i),    w(x) = (O + λW⁻¹)⁻¹ o(x),
#
# where O is centred on the samples that have K and scaled to unit variance, and so is the row o(x)
# of a new sample. The entries of w(x) add up to zero.
#
# λ minimises the leave-one-out error. With ``S = W^{1/2}`` and ``G = (SOS + λI)⁻¹``, the residual
# of sample i has the squared length
#
#     ‖r_i‖² = λ² (G SKS G)_ii / w_i,
#
# and a part δ of its weight can be left out in closed form: the residual is then divided by
# ``1 − δ (1 − λG_ii) / w_i − δ / Σw``. A sample of weight two counts as two samples, of which one
# is left out (δ = 1); a sample of weight less than one is left out as a whole (δ = w_i).


#: Candidate values of λ, for kernels of unit variance, from little shrinkage to nearly the mean.
REGS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@storable
@dataclass(frozen=True)
class Reconstruction:
    """Kernel ridge regression at the best λ, `reg`; `inverse` is ``S G S`` on the samples `rows`.

    `errors` are the leave-one-out errors for every λ of `REGS`, relative to the error of the mean.
    """

    rows: np.ndarray
    shares: np.ndarray
    means: np.ndarray
    grand_mean: float
    scale: float
    inverse: np.ndarray
    reg: float
    errors: np.ndarray

    @property
    def error(self) -> float:
        """Relative leave-one-out error at the best λ."""
        return float(self.errors.min())

    @classmethod
    def learn(cls, others: np.ndarray, kernel: np.ndarray, weights: np.ndarray) -> Reconstruction:
        """Fit from two kernels (m, m); `weights` are zero for samples that lack `kernel`."""
        rows = np.flatnonzero(weights > 0)
        weights = weights[rows]
        shares = weights / weights.sum()
        others, kernel = (matrix[np.ix_(rows, rows)] for matrix in (others, kernel))
        means = shares @ others
        grand_mean = float(means @ shares)
        others = others - means - means[:, None] + grand_mean
        variance = float(others.diagonal() @ shares)
        scale = 1.0 / variance if variance > 0.0 else 0.0
        roots = np.sqrt(weights)
        outer = np.outer(roots, roots)
        others, kernel = scale * others * outer, kernel * outer
        fits = [_left_out_error(others, kernel, weights, reg) for reg in REGS]
        errors = np.array([error for error, _ in fits])
        best = int(np.argmin(errors))
        inverse = fits[best][1] * outer
        errors = errors / max(float(kernel.trace()), ACCUMULATED)
        return cls(rows, shares, means, grand_mean, scale, inverse, REGS[best], errors)

    def coefficients(self, others: np.ndarray) -> np.ndarray:
        """Return w of new samples, (n_rows, m), from their kernel `others` with training."""
        known = others[:, self.rows]
        centred = known - (known @ self.shares)[:, None] - self.means + self.grand_mean
        weights = np.zeros(others.shape)
        weights[:, self.rows] = self.scale * centred @ self.inverse
        return weights


def _left_out_error(
    others: np.ndarray, kernel: np.ndarray, weights: np.ndarray, reg: float
) -> tuple[float, np.ndarray]:
    """Return the weighted leave-one-out squared error, and G, from ``SOS`` and ``SKS``."""
    shifted = others.copy()
    shifted.flat[:: len(others) + 1] += reg
    factor, _ = linalg.lapack.dpotrf(shifted, lower=True)
    G, _ = linalg.lapack.dpotri(factor, lower=True)
    G = np.tril(G) + np.tril(G, -1).T
    squares = reg**2 * np.sum((G @ kernel) * G, axis=1)
    left_out = np.minimum(weights, 1.0)
    leverage = (1.0 - reg * G.diagonal()) / weights + 1.0 / weights.sum()
    # Positive in exact arithmetic; rounding errors must not change its sign.
    remainder = np.maximum(1.0 - left_out * leverage, ACCUMULATED)
    return float(np.sum(squares / remainder**2)), G


# -- Completed kernels ----------------------------------------------------------------------------


@storable
class Sums(NamedTuple):
    """Sums ``Σ_i w_i φ(x_i)`` over training samples x_i, for samples that lack the kernel of φ.

    Two arrays (number of these samples, m): the coefficients w, and the inner products of the
    sums with every φ(x_i), zero where x_i lacks φ.
    """

    coefficients: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, coefficients: np.ndarray, training_kernel: np.ndarray) -> Sums:
        return cls(coefficients, coefficients @ training_kernel)

    @property
    def squares(self) -> np.ndarray:
        """Squared norms of the sums."""
        norms: np.ndarray = np.sum(self.products * self.coefficients, axis=1)
        return norms


@storable
class Images(NamedTuple):
    """Imputed images of some samples: which kernels they have, s (`stretch`), and sums by kernel.

    `sums` has an entry for each kernel that some of the samples lack, unless it is completed by
    its mean.
    """

    present: np.ndarray
    stretch: np.ndarray
    sums: dict[int, Sums]

    def take(self, samples: np.ndarray) -> Images:
        """Return the images of some of the samples."""
        taken = {}
        for j, sums in self.sums.items():
            lacking = ~self.present[j]
            # Row of each lacking sample in the arrays of `sums`.
            sum_rows = np.cumsum(lacking) - 1
            rows = sum_rows[samples][lacking[samples]]
            taken[j] = Sums(sums.coefficients[rows], sums.products[rows])
        return Images(self.present[:, samples], self.stretch[samples], taken)


class Completion(StackTransform):
    """Base class of completions; a subclass defines how images are imputed.

    For a new sample, all of its kernels with all training samples are needed, even if only some
    kernels are requested: s depends on the number of its kernels, and the mean on all samples.

    Attributes
    ----------
    present_ : ndarray of bool of shape (n_kernels, n_samples)
        Which training samples have which kernels.
    views_ : ndarray of int of shape (n_kernels,)
        The view of each kernel, as set by :meth:`KernelStack.with_views`. By default, kernels that
        are missing for the same training samples form one view.
    """

    takes_missing: ClassVar[bool] = True

    @property
    def needs_all_columns(self) -> bool:
        return True

    # -- learning --------------------------------------------------------------------------

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: object) -> None:
        if not isinstance(stack, KernelStack):
            raise ValueError(
                "Kernels with missing samples are completed as whole matrices, but these kernels "
                'are computed by columns: use another solver, or missing="error".'
            )
        stack = check_stack(stack, missing=True, psd="ignore")
        assert stack.row_diag is not None
        self.present_ = ~np.isnan(stack.row_diag)
        refuse_samples_without_kernels(self.present_, stack.names, stack.row_samples)
        self.names_ = stack.names
        self.views_ = _views_of(stack, self.present_)
        self.outputs_ = np.arange(stack.n_kernels)
        self.columns_ = np.arange(len(stack))
        kernel_weights = weights * self.present_
        totals = kernel_weights.sum(axis=1, keepdims=True)
        # Kernels that no training sample has are completed by zero.
        self.known_ = totals[:, 0] > 0
        self.shares_ = kernel_weights / np.where(totals > 0, totals, 1.0)
        self.means_ = np.zeros(self.present_.shape)
        for j in np.flatnonzero(self.known_).tolist():
            self.means_[j] = filled_kernel(stack, j) @ self.shares_[j]
        self.grand_means_ = np.sum(self.means_ * self.shares_, axis=1)
        squares = np.sum(np.where(self.present_, stack.row_diag, 0.0) * self.shares_, axis=1)
        # A mean within its rounding error is zero, and has no direction.
        zero = np.abs(self.grand_means_) <= ROUNDING * np.abs(squares)
        self.means_[zero], self.grand_means_[zero] = 0.0, 0.0
        variances = squares - self.grand_means_
        # As in normalisations, a variance within its rounding error counts as zero.
        constant = variances <= ACCUMULATED * np.abs(squares)
        self.inverse_variances_ = np.where(constant, 0.0, 1.0 / np.where(constant, 1, variances))
        self._learn_more(stack, weights)
        self.training_ = images = self._images(stack, self.present_)
        self.diagonals_ = np.array(
            [
                self._lengths(j, self.means_[j], stack.row_diag[j], images)
                for j in range(stack.n_kernels)
            ]
        )

    def _learn_more(self, stack: KernelStack, weights: np.ndarray) -> None:
        """Set further attributes that a subclass needs."""

    @abstractmethod
    def _images(self, stack: KernelStack, present: np.ndarray) -> Images:
        """Impute images for the rows of a stack whose columns are the training samples."""

    def _known_lengths(self, present: np.ndarray, filled: np.ndarray) -> np.ndarray:
        """Return ``Σ_v ρ_v``, given ρ of imputed images, (n_kernels, rows)."""
        lengths = np.where(present, 1.0, filled) * self.known_[:, None]
        views = self.views_[self.known_]
        sizes = np.bincount(views, minlength=self.views_.max() + 1)
        total: np.ndarray = (lengths / np.maximum(sizes, 1)[self.views_, None]).sum(axis=0)
        return total

    def _stretch(self, present: np.ndarray, filled: np.ndarray) -> np.ndarray:
        """Return s of some samples."""
        total = self._known_lengths(present, filled)
        n_views = len(np.unique(self.views_[self.known_]))
        # Exactly one where nothing is missing, and for samples without any kernel of training.
        whole = present[self.known_].all(axis=0) | (total <= 0.0)
        stretch: np.ndarray = np.where(whole, 1.0, np.sqrt(n_views / np.where(whole, 1.0, total)))
        return stretch

    # -- transforming ----------------------------------------------------------------------

    def _transform(self, stack: KernelStack) -> KernelStack:
        if stack.n_kernels != len(self.present_):
            raise ValueError(
                f"The stack has {stack.n_kernels} kernels, but {type(self).__name__} was fitted "
                f"on {len(self.present_)}."
            )
        stack = check_stack(stack, missing=True, psd="ignore")
        present = self.present_ if stack.gram else self._present_rows(stack)
        if present.all() and self.present_.all():
            chosen = stack.select(self.outputs_)
            return chosen if len(self.columns_) == stack.shape[1] else chosen[:, self.columns_]
        rows = self.training_ if stack.gram else self._images(stack, present)
        columns = self.training_.take(self.columns_)
        data = allocate((len(self.outputs_), len(stack), len(self.columns_)))
        row_diag = None if stack.row_diag is None else np.empty(data.shape[:2])
        for i, j in enumerate(self.outputs_.tolist()):
            if not self.known_[j]:
                data[i] = 0.0
                if row_diag is not None:
                    row_diag[i] = 0.0
                continue
            block = filled_kernel(stack, j)
            half = self._between_completed_and_given(j, block, rows)
            data[i] = self._columns_completed(j, half, columns)
            if row_diag is not None and stack.row_diag is not None:
                row_diag[i] = self._lengths(j, block @ self.shares_[j], stack.row_diag[j], rows)
        if stack.gram and len(self.columns_) == len(stack):
            for matrix in data:
                symmetrize(matrix)
            row_diag = np.einsum("jii->ji", data).copy()
        whole = len(self.columns_) == len(self.present_[0])
        gram = stack.gram and whole
        col_diag = row_diag if gram else self.diagonals_[np.ix_(self.outputs_, self.columns_)]
        guarantees = stack.guarantees if whole else stack.guarantees.of_part(gram=False)
        col_names = stack.col_samples
        return stack._with_data(
            data,
            names=[stack.names[j] for j in self.outputs_],
            views=None if stack.views is None else tuple(stack.views[j] for j in self.outputs_),
            guarantees=guarantees,
            _scale=np.ones(len(data)),
            _rows=Samples(row_diag, names=stack.row_samples),
            _cols=Samples(col_diag, names=None if col_names is None else col_names[self.columns_]),
        )

    def _present_rows(self, stack: KernelStack) -> np.ndarray:
        """Return which rows of a block have which kernels; refuse columns unlike training."""
        present = np.zeros((stack.n_kernels, len(stack)), dtype=bool)
        for j, name in enumerate(stack.names):
            has_value, expected = ~np.isnan(stack.data[j]), self.present_[j]
            if not self.known_[j]:
                present[j] = has_value.any(axis=1)
                continue
            present[j] = has_value[:, expected].any(axis=1)
            wrong = has_value[present[j]] != expected
            if wrong.any():
                row, column = np.argwhere(wrong)[0]
                row = int(np.flatnonzero(present[j])[row])
                value = "no value (NaN)" if expected[column] else "a value"
                has = "has" if expected[column] else "lacks"
                raise ValueError(
                    f"Kernel {name!r} has {value} at row {row}, column {column}, but the training "
                    f"sample of this column {has} it. A sample that lacks a kernel has NaN in its "
                    "whole row; columns are the training samples, in order."
                )
        refuse_samples_without_kernels(present, stack.names, stack.row_samples)
        return present

    def _between_completed_and_given(self, j: int, block: np.ndarray, rows: Images) -> np.ndarray:
        """Return ``⟨ψ(x), φ(x_i)⟩`` of rows x and training samples x_i; zero if x_i lacks φ."""
        stretch, has = rows.stretch[:, None], rows.present[j]
        half = stretch * block
        half += (1.0 - stretch) * self.means_[j]
        half[~has] = self.means_[j]
        if j in rows.sums:
            half[~has] += stretch[~has] * rows.sums[j].products
        half[:, ~self.present_[j]] = 0.0
        return half

    def _columns_completed(self, j: int, half: np.ndarray, columns: Images) -> np.ndarray:
        """Return ``⟨ψ(x), ψ(x_i)⟩`` from ``⟨ψ(x), φ(x_i)⟩``."""
        stretch, has = columns.stretch, columns.present[j]
        with_mean = (half @ self.shares_[j])[:, None]
        block: np.ndarray = half[:, self.columns_] * stretch
        block += (1.0 - stretch) * with_mean
        block[:, ~has] = with_mean
        if j in columns.sums:
            block[:, ~has] += stretch[~has] * (half @ columns.sums[j].coefficients.T)
        return block

    def _lengths(
        self, j: int, with_mean: np.ndarray, squares: np.ndarray, rows: Images
    ) -> np.ndarray:
        """Return ``⟨ψ(x), ψ(x)⟩`` of rows x, from ``⟨φ(x), μ⟩`` and ``⟨φ(x), φ(x)⟩``."""
        s, has, grand = rows.stretch, rows.present[j], self.grand_means_[j]
        observed = s**2 * np.where(has, squares, 0.0) + 2 * s * (1 - s) * with_mean
        lengths = np.where(has, observed + (1 - s) ** 2 * grand, grand)
        if j in rows.sums:
            sums, s = rows.sums[j], s[~has]
            lengths[~has] += 2 * s * (sums.coefficients @ self.means_[j]) + s**2 * sums.squares
        return lengths

    # -- parts -----------------------------------------------------------------------------

    def sources(self, kernels: np.ndarray) -> np.ndarray:
        return np.arange(len(self.present_))

    def origins(self, kernels: np.ndarray) -> np.ndarray:
        return self.outputs_[super().sources(kernels)]

    def erased(self) -> np.ndarray:
        return np.flatnonzero(~self.known_)

    def select(self, kernels: np.ndarray) -> Self:
        new = copy(self)
        new.outputs_ = self.outputs_[kernels]
        return new

    def for_columns(self, columns: np.ndarray) -> Self:
        """Return a copy that keeps only some of the training samples as columns."""
        new = copy(self)
        new.columns_ = self.columns_[columns]
        return new


def filled_kernel(stack: KernelStack, j: int) -> np.ndarray:
    """Return kernel j with zeros in the rows and columns of samples that lack it."""
    return np.nan_to_num(stack.kernel(j), copy=False, nan=0.0)


def _views_of(stack: KernelStack, present: np.ndarray) -> np.ndarray:
    """Return the number of the view of each kernel."""
    names: list[str | int | bytes]
    if stack.views is not None:
        names = list(stack.views)
    else:
        names = [j if has.all() else has.tobytes() for j, has in enumerate(present)]
    first = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([first[name] for name in names])


def refuse_samples_without_kernels(
    present: np.ndarray, names: list[str], samples: np.ndarray | None, what: str = "kernels"
) -> None:
    """Raise an error that names the samples without any kernel, if there are any."""
    empty = np.flatnonzero(~present.any(axis=0))
    if not len(empty):
        return
    which = shown(empty if samples is None else samples[empty].astype(str))
    raise ValueError(
        f"{len(empty)} of {present.shape[1]} samples have none of the {what} "
        f"({', '.join(names)}): rows {which}. Leave these samples out."
    )


@storable
class MeanCompletion(Completion):
    """Complete missing kernels by the mean image of the training samples.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import KernelStack
    >>> from manykernels.kernels.completion import MeanCompletion
    >>> K = np.array([[2.0, 0.0, np.nan], [0.0, 2.0, np.nan], [np.nan, np.nan, np.nan]])
    >>> stack = KernelStack.from_arrays([K, np.eye(3)], missing=True)
    >>> MeanCompletion().fit_transform(stack).kernel(0)
    array([[2., 0., 1.],
           [0., 2., 1.],
           [1., 1., 1.]])
    """

    def _images(self, stack: KernelStack, present: np.ndarray) -> Images:
        return Images(present, self._stretch(present, np.zeros(present.shape)), {})


@storable
class ConditionalCompletion(Completion):
    """Complete missing kernels by a regression on the other views of a sample.

    Images are reconstructed by kernel ridge regression on the mean kernel of the other views. The
    regularisation λ minimises the leave-one-out error on training samples. The fitted transform
    stores the kernels of the training samples.
    """

    def _learn_more(self, stack: KernelStack, weights: np.ndarray) -> None:
        self._stack, self._weights = stack, weights
        # Keys: the view, and the training samples that have the kernel. Learnt on first use.
        self._reconstructions: dict[tuple[int, bytes], Reconstruction] = {}

    def _images(self, stack: KernelStack, present: np.ndarray) -> Images:
        filled, sums = np.zeros(present.shape), {}
        lacking = np.flatnonzero(self._can_be_reconstructed() & ~present.all(axis=1)).tolist()
        if lacking:
            similar = self._view_kernels(stack, present)
            self._learn_reconstructions(lacking, similar if stack is self._stack else None)
        for j in lacking:
            others = self._others(similar, self.views_[j], present)[~present[j]]
            regression = self._reconstructions[self._key(j)]
            sums[j] = Sums.of(regression.coefficients(others), filled_kernel(self._stack, j))
            known = np.maximum(sums[j].squares * self.inverse_variances_[j], 0.0)
            filled[j, ~present[j]] = known / (known + max(regression.error, ACCUMULATED))
        return Images(present, self._stretch(present, filled), sums)

    def _view_kernels(self, stack: KernelStack, present: np.ndarray) -> np.ndarray:
        """Return the mean of the standardised kernels of each view, zero where missing."""
        total = np.zeros((self.views_.max() + 1, *stack.shape[:2]))
        for j in np.flatnonzero(self.inverse_variances_ > 0.0).tolist():
            K, view = filled_kernel(stack, j), self.views_[j]
            K -= (K @ self.shares_[j])[:, None]
            K -= self.means_[j] - self.grand_means_[j]
            K *= np.outer(present[j], self.present_[j])
            total[view] += K * (self.inverse_variances_[j] / np.sum(self.views_ == view))
        return total

    def _others(self, similar: np.ndarray, view: int, present: np.ndarray) -> np.ndarray:
        """Return the mean kernel of all views but one, rescaled for missing views."""
        rows, columns = (self._stretch_without(view, has) for has in (present, self.present_))
        others: np.ndarray = (similar.sum(axis=0) - similar[view]) * np.outer(rows, columns)
        return others

    def _stretch_without(self, view: int, present: np.ndarray) -> np.ndarray:
        others = present[self.known_ & (self.views_ != view)]
        counts = others.sum(axis=0)
        return np.sqrt(len(others) / np.maximum(counts, 1))

    def _can_be_reconstructed(self) -> np.ndarray:
        """Return a mask of the kernels for which another view has variance."""
        varying = np.unique(self.views_[self.inverse_variances_ > 0.0])
        return self.known_ & (len(varying) - np.isin(self.views_, varying) > 0)

    def _key(self, j: int) -> tuple[int, bytes]:
        return int(self.views_[j]), self.present_[j].tobytes()

    def _learn_reconstructions(self, kernels: list[int], similar: np.ndarray | None) -> None:
        """Fit the regressions of these kernels; `similar` are the training kernels by view."""
        for j in kernels:
            key, view = self._key(j), self.views_[j]
            if key in self._reconstructions:
                continue
            if similar is None:
                similar = self._view_kernels(self._stack, self.present_)
            others = self._others(similar, view, self.present_)
            weights = self._weights * self.present_[j]
            self._reconstructions[key] = Reconstruction.learn(others, similar[view], weights)


#: Completions by the value of the parameter `missing` of estimators.
COMPLETIONS: dict[str, type[Completion]] = {
    "mean": MeanCompletion,
    "conditional": ConditionalCompletion,
}


def preparation_with(missing: str, normalize: str | None, *, center: bool = True) -> Chain:
    """Return the unfitted preprocessing of an estimator with these parameters."""
    completion = COMPLETIONS[missing]() if missing != "error" else None
    return preparation(normalize, center=center, completion=completion)


# -- Kernels of tables with missing values --------------------------------------------------------


@contextmanager
def _advising() -> Iterator[None]:
    """Append advice on single missing values to an error about NaN."""
    try:
        yield
    except ValueError as error:
        if "NaN" in str(error):
            raise ValueError(
                f"{error} A sample lacks a kernel only if all columns of the kernel are missing: "
                "impute single values, for example with kernel.after(SimpleImputer())."
            ) from error
        raise


@storable
class WhereKnown(PartialKernel):
    """Kernel of the rows of a table that have values in its columns.

    A row with only missing values in the columns of the kernel has NaN in its whole row and
    column. Estimators with ``missing="mean"`` or ``"conditional"`` wrap their kernels in this
    class.

    Parameters
    ----------
    kernel : Kernel
        The wrapped kernel.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, fitted on the rows that have values.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.kernels import Linear
    >>> from manykernels.kernels.completion import WhereKnown
    >>> X = np.array([[1.0, 5.0], [np.nan, 6.0], [2.0, 7.0]])
    >>> WhereKnown(Linear().on([0])).fit(X)(X)
    array([[ 1., nan,  2.],
           [nan, nan, nan],
           [ 2., nan,  4.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"kernel": [Kernel]}

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    @property
    def columns(self) -> Any:  # type: ignore[override]
        """Columns that the kernel compares."""
        return self.kernel.columns

    @property
    def _title(self) -> str:
        return self.kernel._title

    def on(self, columns: Columns) -> Self:
        """Return an unfitted copy of this kernel that compares only `columns`."""
        return type(self)(self.kernel.on(columns))

    @property
    def frozen_columns(self) -> Any:
        """Columns of the fitted kernel, where a callable has been replaced by its choice."""
        return getattr(getattr(self, "kernel_", None), "columns_", self.kernel.columns)

    def known(self, X: object) -> np.ndarray:
        """Return a mask of the rows of `X` with values in the columns of the kernel."""
        return self._rows(SharedTable.of(X))[0]

    def _rows(self, X: SharedTable) -> tuple[np.ndarray, SharedTable]:
        places = tuple(column_positions(X, self.frozen_columns))

        def find_rows() -> tuple[np.ndarray, SharedTable]:
            has = ~absent_rows(as_table(select_columns(X, list(places))))
            return has, X if has.all() else SharedTable(safe_indexing(X.X, np.flatnonzero(has)))

        rows: tuple[np.ndarray, SharedTable] = X.once(("rows with values", places), find_rows)
        return rows

    def fit(self, X: object, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the kernel on the rows that have values in its columns."""
        self._validate_params()
        X = SharedTable.of(X)
        weights = sample_weights(sample_weight, X.X)
        # A new kernel, since this one may have resolved its columns in an earlier fit.
        has, known = type(self)(self.kernel)._rows(X)
        if not weights[has].any():
            raise ValueError(
                "no training sample has values in the columns of this kernel: leave it out."
            )
        with self._explaining():
            self.kernel_ = clone(self.kernel).fit(known, taken(y, has), weights[has])
        return self

    def compared_columns(self, X: object) -> Iterator[tuple[str, list[int], bool]]:
        """Yield the columns that the wrapped kernel reads."""
        return self.kernel_.compared_columns(X)

    def _explaining(self) -> AbstractContextManager[None]:
        return _advising()


@storable
class Presence(Kernel):
    """Share of views that two samples both have: the pattern of missing data as a kernel.

    The kernel is useful where views are missing for a reason that is related to the target, such
    as a measurement that is taken in severe cases only. For a single table, it is the share of
    columns that both samples have. It is constant, and of no use, if nothing is missing.

    Parameters
    ----------
    columns : str, int, list, slice, boolean mask or callable, default=None
        The columns, or views, to compare; None means all.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels import Views
    >>> from manykernels.kernels import Presence
    >>> views = Views({"a": np.array([[1.0], [2.0]]), "b": np.array([[3.0], [np.nan]])})
    >>> Presence().fit(views)(views)
    array([[1. , 0.5],
           [0.5, 0.5]])
    """

    #: It compares all views together, see :func:`.composition.names_its_views`.
    of_all_views = True

    def _validated(self, X: object) -> np.ndarray:
        """Return 1 for every view, or column, that a row has, else 0; (rows, n_views)."""
        if are_views(X):
            return as_views(X).present.astype(np.float64)
        table = as_table(X)
        columns = (safe_indexing(table, [j], axis=1) for j in range(table.shape[1]))
        return 1.0 - np.column_stack([absent_rows(column) for column in columns])

    def compared_columns(self, X: object) -> Iterator[tuple[str, list[int], bool]]:
        """Yield nothing: the kernel does not depend on the values of the columns."""
        return iter(())

    def _evaluate(self, X: np.ndarray, Y: np.ndarray | None) -> np.ndarray:
        return X @ (X if Y is None else Y).T / self.n_features_in_

    def _diagonal(self, X: np.ndarray) -> np.ndarray:
        return X.mean(axis=1)


def taken(y: Any, rows: np.ndarray) -> Any:
    """Return the targets of some rows, a mask; None without targets."""
    return None if y is None else np.asarray(y)[rows]


def known_where_possible(kernel: Kernel) -> Kernel:
    """Wrap a kernel in `WhereKnown`, unless it is a `Presence` kernel."""
    return kernel if isinstance(kernel, Presence) else WhereKnown(kernel)


def views_of_kernels(kernels: list[tuple[str, Any]], X: object) -> list[str]:
    """Return the view of each kernel: its name, or the columns of a table."""
    views = []
    for name, kernel in kernels:
        if isinstance(kernel, WhereKnown):
            views.append(f"columns {column_positions(X, kernel.frozen_columns)}")
        else:
            views.append(getattr(kernel, "view", name))
    return views


def refuse_rows_without_kernels(kernels: list[tuple[str, Any]], X: object) -> None:
    """Raise an error for rows of a table that lack every kernel except `Presence`."""
    partial = [(name, kernel) for name, kernel in kernels if isinstance(kernel, WhereKnown)]
    if partial:
        known = np.array([kernel.known(X) for _, kernel in partial])
        refuse_samples_without_kernels(known, [name for name, _ in partial], row_names(X))


def refuse_rows_without_values(kernels: list[tuple[str, Any]], X: object) -> None:
    """Raise an error for rows of a table that lack all columns of a kernel."""
    table = as_table(X)
    for name, kernel in kernels:
        kernel = as_kernel(kernel)
        if isinstance(kernel, Presence | WhereKnown):
            continue
        rows = np.flatnonzero(~WhereKnown(kernel).known(table))
        if len(rows):
            names = row_names(table)
            which = shown(rows if names is None else names[rows])
            raise ValueError(
                f"Kernel {name!r}: all its columns are missing (NaN) for {len(rows)} of "
                f'{table.shape[0]} samples, rows {which}. Pass missing="mean" or '
                'missing="conditional" to the estimator, or leave these samples out.'
            )


@contextmanager
def explaining_lacking_rows(union: Any, X: object) -> Iterator[None]:
    """Replace an error about NaN by one about rows that lack all columns of a kernel."""
    try:
        yield
    except ValueError as error:
        if union is not None and "NaN" in str(error) and not are_views(X):
            refuse_rows_without_values(union._pairs, X)
        raise
