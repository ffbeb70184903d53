"""Rows of several tables matched by their labels, and targets matched with rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._sklearn import num_samples, safe_indexing

#: What is done if the labels of the tables are not the same.
JOINS = ("exact", "inner", "outer")

# How many labels an error message lists.
_SHOWN = 5


@dataclass(frozen=True)
class Labelled:
    """A table with the labels of its rows; None if rows are known by position only."""

    table: Any
    labels: Any = None


def matched(
    tables: Mapping[str, Labelled], join: str
) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    """Labels of the samples, and where each sample is in every table; −1 where it is not.

    Samples are in the order of the first table that has all of them; if there is none, in that of
    the first table with labels, and those that it lacks come after. Tables without labels are
    matched by position.
    """
    labelled = {name: _array(one.labels) for name, one in tables.items() if one.labels is not None}
    sizes = {name: int(num_samples(one.table)) for name, one in tables.items()}
    if not labelled or _all_equal(list(labelled.values())):
        _check_sizes(sizes)
        labels = next(iter(labelled.values()), None)
        return labels, {name: np.arange(size) for name, size in sizes.items()}
    for name in tables:
        if name not in labelled:
            first = next(iter(labelled))
            raise ValueError(
                f"view {name!r}: its rows have no labels, and those of the other views are not in "
                f"one order, so that it cannot be matched with them. Give it the index of its "
                f"rows, such as pd.DataFrame(X, index=...), or put all views into the order of "
                f"{first!r}."
            )
    found = {name: _positions(labels, f"view {name!r}") for name, labels in labelled.items()}
    labels = _joined_labels(labelled, found, join)
    places = {
        name: np.array([known.get(label, -1) for label in labels.tolist()], dtype=np.intp)
        for name, known in found.items()
    }
    return labels, places


def _joined_labels(
    labelled: dict[str, np.ndarray], found: dict[str, dict[Any, int]], join: str
) -> np.ndarray:
    every = dict.fromkeys(label for labels in labelled.values() for label in labels.tolist())
    common = [label for label in every if all(label in known for known in found.values())]
    if join == "outer":
        # Targets and predictions without labels are in the order of some table that has them all.
        whole = (labels for labels in labelled.values() if len(labels) == len(every))
        return next(whole, _array(list(every)))
    if join == "inner":
        if not common:
            raise ValueError(f"No sample is in all views: {_examples(labelled)}.")
        return _array(common)
    if not common:
        raise ValueError(
            f"Views have no row labels in common: {_examples(labelled)}. Give them the same "
            "index, or pass arrays, which are matched by position."
        )
    for name, known in found.items():
        absent = [label for label in every if label not in known]
        if absent:
            raise ValueError(
                f"view {name!r} lacks {len(absent)} of {len(every)} samples: {shown(absent)}. "
                'Keep them as samples lacking a view (missing="mean" or "conditional" of an '
                'estimator, join="outer" of Views), or leave them out (join="inner").'
            )
    return _array(common)


def _check_sizes(sizes: dict[str, int]) -> None:
    (first, size), *others = sizes.items()
    for name, other in others:
        if other != size:
            raise ValueError(
                f"view {name!r} has {other} rows, view {first!r} has {size}. Views without labels "
                "are matched by position and have to be equally long."
            )
    if size == 0:
        raise ValueError(f"Found array with 0 sample(s): view {first!r} has no rows.")


def _positions(labels: np.ndarray, what: str) -> dict[Any, int]:
    """Position of each label; `what` has the rows."""
    places = {label: place for place, label in enumerate(labels.tolist())}
    if len(places) < len(labels):
        values = labels.tolist()
        twice = next(label for place, label in enumerate(values) if places[label] != place)
        raise ValueError(
            f"{what} has several rows labelled {twice!r}, so that rows cannot be matched by "
            "label. Make the labels unique, or pass arrays in one order."
        )
    return places


def in_one_order(tables: Mapping[str, Labelled]) -> bool:
    """Whether one table has all samples, and the others theirs in the same order."""
    labels = [list(_array(one.labels)) for one in tables.values() if one.labels is not None]
    if not labels or all(own == labels[0] for own in labels):
        return True
    longest: list[Any] = max(labels, key=lambda own: len(own))
    places = {label: place for place, label in enumerate(longest)}
    found = [[places.get(label, -1) for label in own] for own in labels]
    return all(-1 not in own and own == sorted(own) for own in found)


def refuse_unlabelled(targets: Mapping[str, Any]) -> None:
    """Refuse targets without labels, for samples that have no one order."""
    for name, values in targets.items():
        if values is not None and _index_of(values) is None:
            raise ValueError(
                f"The views have their rows in different orders, so that {name} needs labels: "
                f"pass it as a pandas Series with the index of the samples, or make Views of the "
                f"tables first, and pass {name} in the order of views.labels."
            )


def _index_of(values: Any) -> Any:
    """The index of a pandas Series or frame; a list has a method of this name."""
    index = getattr(values, "index", None)
    return None if callable(index) else index


def matched_targets(targets: Any, labels: np.ndarray | None, what: str) -> Any:
    """Targets in the order of samples with these labels, if both have labels.

    The labels of targets are the index of a pandas Series or frame. If one side has the index
    0, 1, 2, …, which pandas gives to rows without labels, and the other side has other labels,
    they are matched by position.
    """
    index = _index_of(targets)
    if index is None or labels is None:
        return targets
    own = _array(index)
    if len(own) == len(labels) and np.array_equal(own, labels):
        return targets
    known, samples = set(own.tolist()), set(labels.tolist())
    if known == samples:
        places, _ = _positions(own, what), _positions(labels, "X")
        return safe_indexing(targets, [places[label] for label in labels.tolist()])
    if _counts(own) or _counts(labels):
        return targets
    without = [label for label in labels.tolist() if label not in known]
    surplus = [label for label in own.tolist() if label not in samples]
    said = (
        f"{len(without)} samples of X are not in it: {shown(without)}"
        if without
        else f"{len(surplus)} of its samples are not in X: {shown(surplus)}"
    )
    raise ValueError(
        f"The labels of {what} are not those of X: {said}. Give both the same index, or pass "
        f"{what} as an array in the order of X. If a search cuts both by position, bring {what} "
        f"into the order of the rows first: {what}.loc[views.labels]."
    )


def _counts(labels: np.ndarray) -> bool:
    """Whether labels are the numbers 0, 1, 2, …"""
    return labels.tolist() == list(range(len(labels)))


def _array(labels: Any) -> np.ndarray:
    """Labels in one dimension; those of several levels are tuples."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1:
        return labels
    values = list(labels)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _all_equal(every: list[np.ndarray]) -> bool:
    first = every[0].tolist()
    return all(labels.tolist() == first for labels in every[1:])


def _examples(labelled: dict[str, np.ndarray]) -> str:
    return "; ".join(
        f"rows of {name!r} are labelled {shown(labels[:2])}"
        if len(labels)
        else f"{name!r} is empty"
        for name, labels in labelled.items()
    )


def shown(labels: Any) -> str:
    """The first labels, for an error message."""
    some = ", ".join(repr(label) for label in _array(labels)[:_SHOWN].tolist())
    return some + (", …" if len(labels) > _SHOWN else "")
