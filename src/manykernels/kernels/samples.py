"""Names of samples, and whether the columns of a test block are the training samples.

The shape of a square block between test and training samples does not tell it from its transpose.
The names of rows and columns of data frames do, and self-similarities may.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .tables import is_frame

if TYPE_CHECKING:
    from .stack import KernelStack

# Self-similarities that differ by more than this part of the largest are those of different
# samples: some ten times the rounding error of single precision, which blocks may have.
_SAME = 1e-6


def row_names(table: Any) -> np.ndarray | None:
    """Names of the rows of a data frame or of views; None if they are numbers from 0.

    Other tables have none.
    """
    if is_frame(table):
        return _names(getattr(table, "index", None))
    labels = getattr(table, "labels", None)
    if labels is None or np.array_equal(labels, np.arange(len(labels))):
        return None
    return check_samples(labels, len(labels), "samples")


def column_names(table: Any) -> np.ndarray | None:
    """Names of the columns of a data frame, as :func:`row_names`."""
    return _names(table.columns) if is_frame(table) else None


def _names(index: Any) -> np.ndarray | None:
    if index is None or (type(index).__name__ == "RangeIndex" and index.start == 0):
        return None
    return check_samples(index, len(index), "samples")


def check_samples(names: Any, size: int, what: str) -> np.ndarray | None:
    """`names` as strings, one per sample."""
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"{what} has one name per sample, not the single string {names!r}.")
    strings = np.array([str(name) for name in names], dtype=np.str_)
    if len(strings) != size:
        raise ValueError(f"{what} has {len(strings)} names for {size} samples.")
    strings.flags.writeable = False
    return strings


def same_samples(left: np.ndarray | None, right: np.ndarray | None) -> bool:
    """Whether the names are equal, as far as they are known."""
    return left is None or right is None or np.array_equal(left, right)


def first_difference(left: Any, right: Any) -> str:
    """The first difference between two arrays of names, for an error message."""
    if len(left) != len(right):
        return f"{len(left)} names against {len(right)}"
    position = int(np.argmax(left != right))
    return f"{str(left[position])!r} against {str(right[position])!r} at position {position}"


@dataclass(frozen=True)
class TrainingSamples:
    """What is remembered of the training samples, to check the columns of test blocks."""

    names: np.ndarray | None
    #: The first kernel whose self-similarities differ; None if there is none, as for Gaussians.
    kernel: int | None
    #: The self-similarities in this kernel.
    diagonal: np.ndarray | None

    @classmethod
    def of(cls, stack: KernelStack) -> TrainingSamples:
        """What is remembered of a Gram stack."""
        for j, diagonal in enumerate(stack.row_diag if stack.row_diag is not None else []):
            known = diagonal[~np.isnan(diagonal)]
            if len(known) and not _equal(known, known[:1]):
                return cls(stack.col_samples, j, diagonal.copy())
        return cls(stack.col_samples, None, None)

    def check_columns(self, block: KernelStack) -> None:
        """Refuse a block whose columns are known not to be the training samples, in order."""
        self._check_names(block.col_samples, block.row_samples)
        if self.kernel is None or self.diagonal is None or block.col_diag is None:
            return
        if _equal(block.col_diag[self.kernel], self.diagonal):
            return
        name = block.names[self.kernel]
        if block.gram:
            raise ValueError(
                f"X is a Gram matrix of other samples than those of training: the diagonals of "
                f"kernel {name!r} differ. A test block has one row per test sample and one column "
                "per training sample."
            )
        if block.row_diag is not None and _equal(block.row_diag[self.kernel], self.diagonal):
            raise ValueError(
                f"The rows of X are the training samples, to judge by their self-similarities in "
                f"kernel {name!r}, and its columns are not: pass the transposed block."
            )

    def _check_names(self, columns: np.ndarray | None, rows: np.ndarray | None) -> None:
        if columns is None or self.names is None or np.array_equal(columns, self.names):
            return
        where = first_difference(columns, self.names)
        if rows is not None and np.array_equal(rows, self.names):
            way_out = "Its rows are: pass the transposed block."
        elif sorted(columns) == sorted(self.names):
            way_out = "They are the same samples in another order: use the order of training."
        else:
            way_out = "A test block has one column per training sample."
        raise ValueError(
            f"The columns of X are not the training samples, to judge by their names: {where}. "
            f"{way_out}"
        )


def _equal(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether self-similarities are equal up to rounding error; `right` may have one entry."""
    if left.shape != right.shape and right.shape != (1,):
        return False
    # Samples that lack the kernel have no self-similarity.
    left, right = (np.where(np.isnan(one), 0.0, one) for one in (left, right))
    with np.errstate(invalid="ignore"):  # infinite values are refused later
        return bool(np.all(np.abs(left - right) <= _SAME * np.abs(left).max(initial=0.0)))
