"""What a first pass counts: rows, weights, and classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .base import Block

# What error messages call the kinds of labels that are compared with each other.
_KINDS = {"b": "number", "i": "number", "u": "number", "f": "number", "U": "string", "S": "string"}


@dataclass(frozen=True)
class Census:
    """Rows counted in one pass.

    Attributes
    ----------
    n_rows : int
        Rows that were read.
    n_counting : int
        Those of them with a weight above zero.
    total_weight : float
        Sum of sample weights; the number of rows if there are none.
    classes : ndarray or None
        Class labels of rows that count, sorted; None if targets are no classes.
    counts, weights : ndarray or None
        Number of rows, and sum of their sample weights, of every class.
    """

    n_rows: int
    n_counting: int
    total_weight: float
    classes: np.ndarray | None = None
    counts: np.ndarray | None = None
    weights: np.ndarray | None = None

    @classmethod
    def of(cls, block: Block, labels: Labels | None) -> Census:
        """That of one block, whose rows that count have these labels."""
        n_rows = len(block)
        weight = np.ones(n_rows) if block.weight is None else block.weight
        counting = weight > 0
        sums = n_rows, int(np.count_nonzero(counting)), float(weight.sum())
        if labels is None:
            return cls(*sums)
        size = len(labels.classes)
        counts = np.bincount(labels.codes, minlength=size)
        weights = np.bincount(labels.codes, weight[counting], minlength=size)
        return cls(*sums, labels.classes, counts, weights)

    @property
    def _by_class(self) -> tuple[Any, Any, Any]:
        return self.classes, self.counts, self.weights

    def merged(self, other: Census) -> Census:
        """That of the rows of both."""
        sums = (
            self.n_rows + other.n_rows,
            self.n_counting + other.n_counting,
            self.total_weight + other.total_weight,
        )
        if self.classes is None or other.classes is None:
            return Census(*sums)
        classes = merged_classes(self.classes, other.classes)
        counts = np.zeros(len(classes), dtype=np.intp)
        weights = np.zeros(len(classes))
        for own, number, weight in (self._by_class, other._by_class):
            places = np.searchsorted(classes, own)
            counts[places] += number
            weights[places] += weight
        return Census(*sums, classes, counts, weights)


@dataclass(frozen=True)
class Labels:
    """Class labels ``classes[codes]``, the classes sorted."""

    classes: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray) -> Labels:
        """Labels of targets; numbers with fractions, and labels of several kinds, are refused."""
        if y.ndim != 1:
            raise ValueError(
                f"y should be a 1d array of class labels, got an array of shape {y.shape} instead."
            )
        if y.dtype == object:
            _refuse_mixed({_kind_of(one) for one in set(map(type, y))})
        if y.dtype.kind == "f" and (fractions := y[y != np.floor(y)]).size:
            raise ValueError(
                f"Unknown label type: continuous. y has the value {fractions[0]}; class labels "
                "are whole numbers, texts or truth values."
            )
        classes, codes = np.unique(y, return_inverse=True)
        return cls(classes, codes)


def merged_classes(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """All of the classes, sorted."""
    if np.array_equal(first, second):
        return first
    kinds = {_array_kind(one) for one in (first, second) if len(one)}
    _refuse_mixed(kinds)
    return np.unique(np.concatenate([first, second]))


def _array_kind(classes: np.ndarray) -> str:
    return (
        _kind_of(type(classes[0]))
        if classes.dtype == object
        else _KINDS.get(classes.dtype.kind, classes.dtype.name)
    )


def _kind_of(kind: type[Any]) -> str:
    if issubclass(kind, str | bytes):
        return "string"
    is_number = issubclass(kind, bool | int | float | np.number | np.bool_)
    return "number" if is_number else kind.__name__


def _refuse_mixed(kinds: set[str]) -> None:
    if len(kinds) > 1:
        raise ValueError(
            f"Mix of label input types ({' and '.join(sorted(kinds))}): the labels of y have to "
            "be of one kind, such as y.astype(str)."
        )
