"""What completions have in common: from what is filled in to completed kernels.

The formulas are those of :mod:`manykernels.kernels.completion`.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from .._memory import allocate
from .._rounding import ACCUMULATED
from ._transformed import Samples
from .checks import check_stack, symmetrize
from .matching import shown
from .stack import KernelStack
from .transforms import StackTransform


class Sums(NamedTuple):
    """``Σ_i w_i φ(x_i)`` over training samples x_i, for some samples that lack the kernel of φ.

    Two tables (number of these samples, m): the coefficients w, and the inner products of the
    sums with every φ(x_i), which are zero where x_i lacks φ.
    """

    coefficients: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, coefficients: np.ndarray, training_kernel: np.ndarray) -> Sums:
        return cls(coefficients, coefficients @ training_kernel)

    @property
    def squares(self) -> np.ndarray:
        """Squared lengths of the sums."""
        lengths: np.ndarray = np.sum(self.products * self.coefficients, axis=1)
        return lengths


class Images(NamedTuple):
    """What is filled in for some samples: which kernels they have, s, and sums by kernel.

    `sums` has an entry for each kernel that some of the samples lack and that is not completed by
    its mean.
    """

    present: np.ndarray
    stretch: np.ndarray
    sums: dict[int, Sums]

    def take(self, samples: np.ndarray) -> Images:
        """Those of some of the samples."""
        chosen = {}
        for j, sums in self.sums.items():
            lacking = ~self.present[j]
            # Of a sample among those that lack kernel j: which of them it is.
            number = np.cumsum(lacking) - 1
            own = number[samples][lacking[samples]]
            chosen[j] = Sums(sums.coefficients[own], sums.products[own])
        return Images(self.present[:, samples], self.stretch[samples], chosen)


class Completion(StackTransform):
    """Base of the completions; a subclass says what is filled in.

    A new sample needs all kernels that it has, even if only some are asked for: s depends on how
    many there are. It needs them with all training samples, for the mean.

    Attributes
    ----------
    present_ : ndarray of shape (n_kernels, n_samples)
        Which training samples have which kernels.
    views_ : ndarray of int of shape (n_kernels,)
        The view of each kernel: that of :meth:`KernelStack.with_views`, or else kernels that the
        same training samples lack count as one view.
    """

    takes_missing: ClassVar[bool] = True

    @property
    def needs_all_columns(self) -> bool:
        return True

    # -- learning --------------------------------------------------------------------------

    def _learn(self, stack: KernelStack, weights: np.ndarray, y: Any) -> None:
        if not isinstance(stack, KernelStack):
            raise ValueError(
                "Kernels that samples may lack are completed as whole matrices, but these are "
                'computed by columns: use another solver, or missing="error".'
            )
        stack = check_stack(stack, missing=True, psd="ignore")
        assert stack.row_diag is not None
        self.present_ = ~np.isnan(stack.row_diag)
        refuse_samples_without_kernels(self.present_, stack.names, stack.row_samples)
        self.names_ = stack.names
        self.views_ = _views_of(stack, self.present_)
        self.outputs_ = np.arange(stack.n_kernels)
        self.columns_ = np.arange(len(stack))
        own = weights * self.present_
        totals = own.sum(axis=1, keepdims=True)
        # Kernels without any sample in training count for nothing.
        self.known_ = totals[:, 0] > 0
        self.shares_ = own / np.where(totals > 0, totals, 1.0)
        self.means_ = np.zeros(self.present_.shape)
        for j in np.flatnonzero(self.known_).tolist():
            self.means_[j] = filled_kernel(stack, j) @ self.shares_[j]
        self.grand_means_ = np.sum(self.means_ * self.shares_, axis=1)
        squares = np.sum(np.where(self.present_, stack.row_diag, 0.0) * self.shares_, axis=1)
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
        """Set what a subclass needs besides means."""

    @abstractmethod
    def _images(self, stack: KernelStack, present: np.ndarray) -> Images:
        """What is filled in for the rows of a stack whose columns are the training samples."""

    def _known_lengths(self, present: np.ndarray, filled: np.ndarray) -> np.ndarray:
        """``Σ_v ρ_v``, given ρ of images that are filled in, (n_kernels, rows)."""
        lengths = np.where(present, 1.0, filled) * self.known_[:, None]
        views = self.views_[self.known_]
        sizes = np.bincount(views, minlength=self.views_.max() + 1)
        total: np.ndarray = (lengths / np.maximum(sizes, 1)[self.views_, None]).sum(axis=0)
        return total

    def _stretch(self, present: np.ndarray, filled: np.ndarray) -> np.ndarray:
        """s of some samples."""
        total = self._known_lengths(present, filled)
        n_views = len(np.unique(self.views_[self.known_]))
        # Exactly one where nothing is missing; a sample that has none of the kernels of training
        # has no length to be kept.
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
        return self._stack_of(stack, data, row_diag)

    def _stack_of(
        self, stack: KernelStack, data: np.ndarray, row_diag: np.ndarray | None
    ) -> KernelStack:
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
        """Which kernels the rows of a block have; the columns must fit the training samples."""
        present = np.zeros((stack.n_kernels, len(stack)), dtype=bool)
        for j, name in enumerate(stack.names):
            given, own = ~np.isnan(stack.data[j]), self.present_[j]
            if not self.known_[j]:
                present[j] = given.any(axis=1)
                continue
            present[j] = given[:, own].any(axis=1)
            wrong = given[present[j]] != own
            if wrong.any():
                row, column = np.argwhere(wrong)[0]
                row = int(np.flatnonzero(present[j])[row])
                what = "no value (NaN)" if own[column] else "a value"
                has = "has" if own[column] else "lacks"
                raise ValueError(
                    f"Kernel {name!r} has {what} at row {row}, column {column}, but the training "
                    f"sample of this column {has} it. A sample that lacks a kernel has NaN in its "
                    "whole row; columns are the training samples, in order."
                )
        refuse_samples_without_kernels(present, stack.names, stack.row_samples)
        return present

    def _between_completed_and_given(self, j: int, block: np.ndarray, rows: Images) -> np.ndarray:
        """``⟨ψ(x), φ(x_i)⟩`` for rows x and training samples x_i; zero where x_i lacks φ."""
        stretch, has = rows.stretch[:, None], rows.present[j]
        half = stretch * block
        half += (1.0 - stretch) * self.means_[j]
        half[~has] = self.means_[j]
        if j in rows.sums:
            half[~has] += stretch[~has] * rows.sums[j].products
        half[:, ~self.present_[j]] = 0.0
        return half

    def _columns_completed(self, j: int, half: np.ndarray, columns: Images) -> np.ndarray:
        """``⟨ψ(x), ψ(x_i)⟩`` from ``⟨ψ(x), φ(x_i)⟩``."""
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
        """``⟨ψ(x), ψ(x)⟩`` of rows x, from ``⟨φ(x), μ⟩`` and ``⟨φ(x), φ(x)⟩``."""
        s, has, grand = rows.stretch, rows.present[j], self.grand_means_[j]
        given = s**2 * np.where(has, squares, 0.0) + 2 * s * (1 - s) * with_mean
        lengths = np.where(has, given + (1 - s) ** 2 * grand, grand)
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
        """The transform of blocks with all training samples to some of them."""
        new = copy(self)
        new.columns_ = self.columns_[columns]
        return new


def filled_kernel(stack: KernelStack, j: int) -> np.ndarray:
    """Kernel j with zero where a sample lacks it."""
    return np.nan_to_num(stack.kernel(j), copy=False, nan=0.0)


def _views_of(stack: KernelStack, present: np.ndarray) -> np.ndarray:
    """Numbers of the views of kernels."""
    if stack.views is not None:
        names: list[Any] = list(stack.views)
    else:
        names = [j if has.all() else has.tobytes() for j, has in enumerate(present)]
    first = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([first[name] for name in names])


def refuse_samples_without_kernels(
    present: np.ndarray, names: list[str], samples: np.ndarray | None, what: str = "kernels"
) -> None:
    """Refuse samples that lack every kernel, by their names or row numbers."""
    empty = np.flatnonzero(~present.any(axis=0))
    if not len(empty):
        return
    which = shown(empty if samples is None else samples[empty].astype(str))
    raise ValueError(
        f"{len(empty)} of {present.shape[1]} samples have none of the {what} "
        f"({', '.join(names)}): rows {which}. Nothing is known of them: leave them out."
    )
