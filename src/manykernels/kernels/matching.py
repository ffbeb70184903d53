"""Matching of rows of several tables, and of targets with rows, by label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..utils.sklearn import num_samples, safe_indexing, warn_caller
from ..utils.storable import storable
from .tables import Table, is_frame, object_array

if TYPE_CHECKING:
    from .stack import KernelStack


# -- Names of samples, and checks of the columns of test blocks -----------------------------------
#
# A square block between test and training samples has the same shape as its transpose. The names
# of rows and columns of data frames distinguish them, and self-similarities may.


# Relative difference above which self-similarities belong to different samples: some ten times
# the rounding error of single precision, which blocks may have.
_SAME = 1e-6


def row_names(table: object) -> np.ndarray | None:
    """Return the names of the rows of a data frame or of views.

    None for other tables, and for rows that are just numbered from 0.
    """
    if is_frame(table):
        return _names(getattr(table, "index", None))
    labels = getattr(table, "labels", None)
    if labels is None or np.array_equal(labels, np.arange(len(labels))):
        return None
    return check_samples(labels, len(labels), "samples")


def column_names(table: Table) -> np.ndarray | None:
    """Return the names of the columns of a data frame; None as for :func:`row_names`."""
    return _names(table.columns) if is_frame(table) else None


def _names(index: Any) -> np.ndarray | None:
    if index is None or (type(index).__name__ == "RangeIndex" and index.start == 0):
        return None
    return check_samples(index, len(index), "samples")


def check_samples(names: Iterable[object] | None, size: int, what: str) -> np.ndarray | None:
    """Return `names` as a read-only array of strings, one per sample."""
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"{what} must have one name per sample, got the string {names!r}.")
    strings = np.array([str(name) for name in names], dtype=np.str_)
    if len(strings) != size:
        raise ValueError(f"{what} has {len(strings)} names for {size} samples.")
    strings.flags.writeable = False
    return strings


def same_samples(left: np.ndarray | None, right: np.ndarray | None) -> bool:
    """Return True if the names are equal or unknown."""
    return left is None or right is None or np.array_equal(left, right)


def first_difference(left: Any, right: Any) -> str:
    """Describe the first difference between two arrays of names."""
    if len(left) != len(right):
        return f"{len(left)} names against {len(right)}"
    position = int(np.argmax(left != right))
    return f"{str(left[position])!r} against {str(right[position])!r} at position {position}"


@storable
@dataclass(frozen=True)
class TrainingSamples:
    """Names and self-similarities of training samples, to check the columns of test blocks."""

    names: np.ndarray | None
    #: The first kernel with different self-similarities; None for Gaussians, for example.
    kernel: int | None
    #: Self-similarities in this kernel.
    diagonal: np.ndarray | None

    @classmethod
    def of(cls, stack: KernelStack) -> TrainingSamples:
        """Extract names and self-similarities from a Gram stack."""
        for j, diagonal in enumerate(stack.row_diag if stack.row_diag is not None else []):
            known = diagonal[~np.isnan(diagonal)]
            if len(known) and not _equal(known, known[:1]):
                return cls(stack.col_samples, j, diagonal.copy())
        return cls(stack.col_samples, None, None)

    def check_columns(self, block: KernelStack) -> None:
        """Raise an error if the columns of a block are not the training samples, in order."""
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
                f"kernel {name!r}, but its columns are not: pass the transposed block."
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
    """Return True if self-similarities are equal up to rounding; `right` may have one entry."""
    if left.shape != right.shape and right.shape != (1,):
        return False
    # Samples that lack the kernel have no self-similarity.
    left, right = (np.where(np.isnan(values), 0.0, values) for values in (left, right))
    with np.errstate(invalid="ignore"):  # infinite values raise an error later
        return bool(np.all(np.abs(left - right) <= _SAME * np.abs(left).max(initial=0.0)))


#: Ways to join tables whose labels are not the same.
JOINS = ("exact", "inner", "outer")

# Number of labels listed in an error message.
_SHOWN = 5


@dataclass(frozen=True)
class Labelled:
    """Table with the labels of its rows; None if rows are matched by position.

    `columns` are the names of the columns of a sparse matrix, if they are known.
    """

    table: Table
    labels: Any = None
    columns: Any = None


def matched(
    tables: Mapping[str, Labelled], join: str
) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    """Return the labels of the samples, and their rows in every table; −1 if missing.

    Samples are in the order of the first table that has all of them; if there is none, in the
    order of the first table with labels, followed by the others. Tables without labels are
    matched by position.
    """
    labelled = {
        name: _array(view.labels) for name, view in tables.items() if view.labels is not None
    }
    sizes = {name: int(num_samples(view.table)) for name, view in tables.items()}
    lists = [labels.tolist() for labels in labelled.values()]
    if all(labels == lists[0] for labels in lists):
        _check_sizes(sizes)
        if not lists or lists[0] == list(range(len(lists[0]))):
            _warn_of_names(tables)
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
    rows = {name: _positions(labels, f"view {name!r}") for name, labels in labelled.items()}
    labels = _joined_labels(labelled, rows, tables, join)
    places = {
        name: np.array([known.get(label, -1) for label in labels.tolist()], dtype=np.intp)
        for name, known in rows.items()
    }
    return labels, places


def _joined_labels(
    labelled: dict[str, np.ndarray],
    rows: dict[str, dict[Any, int]],
    tables: Mapping[str, Labelled],
    join: str,
) -> np.ndarray:
    every = dict.fromkeys(label for labels in labelled.values() for label in labels.tolist())
    common = [label for label in every if all(label in known for known in rows.values())]
    likeness = "" if common else _likeness(labelled, tables)
    if join == "outer" and not likeness:
        # Unlabelled targets and predictions are in the order of the first complete table.
        whole = (labels for labels in labelled.values() if len(labels) == len(every))
        return next(whole, _array(list(every)))
    if join == "inner":
        if not common:
            raise ValueError(f"No sample is in all views: {_examples(labelled)}.{likeness}")
        return _array(common)
    if not common:
        otherwise = " Give them the same index, or pass arrays, which are matched by position."
        raise ValueError(
            f"Views have no row labels in common: {_examples(labelled)}.{likeness or otherwise}"
        )
    for name, known in rows.items():
        absent = [label for label in every if label not in known]
        if absent:
            raise ValueError(
                f"view {name!r} lacks {len(absent)} of {len(every)} samples: {shown(absent)}. "
                'Keep them as samples lacking a view (missing="mean" or "conditional" of an '
                'estimator, join="outer" of Views), or leave them out (join="inner").'
            )
    return _array(common)


def _likeness(labelled: dict[str, np.ndarray], tables: Mapping[str, Labelled]) -> str:
    """Return how labels of views look the same, or are columns of another, and the way out."""
    texts = {name: [str(label) for label in labels.tolist()] for name, labels in labelled.items()}
    width = max(len(text) for labels in texts.values() for text in [*labels, ""])
    forms: dict[str, tuple[Callable[[str], str], str]] = {
        "being numbers or texts": (str, "astype(str)"),
        "upper and lower case": (str.casefold, "str.lower()"),
        "spaces": (str.strip, "str.strip()"),
        "leading zeros": (lambda text: text.lstrip("0") or "0", f"str.zfill({width})"),
    }
    for difference, (form, method) in forms.items():
        sets = [set(map(form, labels)) for labels in texts.values()]
        same = set.intersection(*sets)
        if same and 2 * len(same) >= min(map(len, sets)):
            return (
                f" They look the same but for {difference}: give all the same form, such as "
                f"frame.index.{method}."
            )
    for name, labels in texts.items():
        for other in labelled.keys() - {name}:
            columns = {str(column) for column in getattr(tables[other].table, "columns", ())}
            if columns and 2 * len(columns & set(labels)) >= len(columns):
                return (
                    f" The columns of {other!r} are rows of {name!r}: if it has a column per "
                    "sample, pass its transpose, frame.T."
                )
    return ""


def _warn_of_names(tables: Mapping[str, Labelled]) -> None:
    """Warn if a column has the same entries in all tables, in different orders, like names."""
    frames = {name: view.table for name, view in tables.items() if is_frame(view.table)}
    if len(frames) < 2 or len(frames) < len(tables):
        return
    first, *others = frames.values()
    for column in list(first.columns)[:_SHOWN]:
        if not all(column in other.columns for other in others):
            continue
        entries = [list(frame[column]) for frame in frames.values()]
        sets = [set(map(_name_like, column_entries)) for column_entries in entries]
        if any(None in known or len(known) < len(entries[0]) for known in sets):
            continue
        if all(known == sets[0] for known in sets) and any(one != entries[0] for one in entries):
            warn_caller(
                f"Rows of the views are matched by position, but column {column!r} has the same "
                "entries in all of them, in different orders. If it names the samples, make it "
                f"the index: frame.set_index({column!r}), of a polars frame "
                f"frame.to_pandas().set_index({column!r}).",
                UserWarning,
            )
            return


def _name_like(entry: object) -> object:
    """Return a text or an integer, which may name a sample; of other entries None."""
    is_name = isinstance(entry, str | int | np.integer) and not isinstance(entry, bool)
    return entry if is_name else None


def _check_sizes(sizes: dict[str, int]) -> None:
    (first, size), *others = sizes.items()
    for name, other in others:
        if other != size:
            raise ValueError(
                f"view {name!r} has {other} rows, view {first!r} has {size}. Views without labels "
                "are matched by position and must have the same number of rows."
            )
    if size == 0:
        raise ValueError(f"Found array with 0 sample(s): view {first!r} has no rows.")


def _positions(labels: np.ndarray, what: str) -> dict[Any, int]:
    """Return the position of each label; `what` is the table in the error message."""
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
    """Return True if one table has all samples, and the others have theirs in its order."""
    labels = [list(_array(view.labels)) for view in tables.values() if view.labels is not None]
    if not labels or all(others == labels[0] for others in labels):
        return True
    longest: list[Any] = max(labels, key=len)
    places = {label: place for place, label in enumerate(longest)}
    positions = [[places.get(label, -1) for label in others] for others in labels]
    return all(-1 not in rows and rows == sorted(rows) for rows in positions)


def refuse_unlabelled(targets: Mapping[str, Any]) -> None:
    """Raise an error for targets without labels if tables have different orders."""
    for name, values in targets.items():
        if values is not None and row_labels(values) is None:
            raise ValueError(
                f"The views have their rows in different orders, so that {name} needs labels: "
                f"pass it as a pandas Series with the index of the samples, or make Views of the "
                f"tables first, and pass {name} in the order of views.labels."
            )


def row_labels(table: object) -> Any:
    """Return the index of a pandas frame or Series; None for others (lists have a method)."""
    index = getattr(table, "index", None)
    return None if index is None or callable(index) else index


def matched_targets(labels: object, *, quiet: bool = False, **targets: Any) -> tuple[Any, ...]:
    """Return targets, such as ``y=y, sample_weight=w``, in the order of the samples of X.

    `labels` are the labels of the samples; those of targets are the index of a pandas object.

    - The same labels in another order: targets are reordered, with a warning unless `quiet`.
    - The same numbers 0, 1, 2, …, in order on one side only: an error, since they may be labels,
      or the default index of rows that were shuffled before.
    - Only some labels in common: an error.
    - Texts that differ, and have none in common or are repeated: an error.
    - Other labels without any in common, repeated labels, or no labels: by position, as in
      scikit-learn.
    """
    ordered, moved = [], []
    for name, values in targets.items():
        places = _places_of(labels, row_labels(values), name)
        if places is not None:
            values = safe_indexing(values, places)
            moved.append(name)
        ordered.append(values)
    if moved and not quiet:
        warn_caller(
            f"The rows of {' and '.join(moved)} have the labels of X in another order, and were "
            "matched with those of X by label. If they belong together by position, pass arrays: "
            f"{', '.join(f'{name}.to_numpy()' for name in moved)}.",
            UserWarning,
        )
    return tuple(ordered)


def _places_of(labels: Any, index: Any, what: str) -> list[int] | None:
    """Return the rows of the samples in `what`; None if rows are matched by position."""
    if labels is None or index is None or (hasattr(labels, "equals") and labels.equals(index)):
        return None
    labels, targets = _array(labels), _array(index)
    numbered = all(isinstance(label, int) for label in targets.tolist())
    # The sample names of kernel stacks are strings.
    target_labels = (
        targets.tolist() if labels.dtype.kind != "U" else list(map(str, targets.tolist()))
    )
    samples = labels.tolist()
    if target_labels == samples:
        return None
    places = {label: place for place, label in enumerate(target_labels)}
    unique = len(places) == len(target_labels) and len(set(samples)) == len(samples)
    shared = [label for label in samples if label in places]
    if not unique or not shared:
        _refuse_texts(targets.tolist(), samples, what)
        return None
    if len(shared) < max(len(target_labels), len(samples)):
        _refuse_some_shared(target_labels, samples, len(shared), what)
    if numbered and (_are_in_order(target_labels) or _are_in_order(samples)):
        first, second = (what, "X") if _are_in_order(target_labels) else ("X", what)
        raise ValueError(
            f"The rows of {first} are numbered 0, 1, 2, …, those of {second} have the same "
            "numbers in another order: rows may belong together by these labels, or by position "
            f"if one of them was shuffled and numbered anew. By label: pass {what}.loc[X.index]. "
            f"By position: pass {what}.to_numpy(), or both with .reset_index(drop=True)."
        )
    return [places[label] for label in samples]


def _refuse_texts(targets: list[Any], samples: list[Any], what: str) -> None:
    """Raise if labels that differ, and cannot be matched, are names and not row numbers."""
    if not all(isinstance(label, str) for label in targets + samples):
        return
    problem = "have none in common"
    if set(targets) & set(samples):
        counts = Counter(samples), Counter(targets)
        repeated = next(label for count in counts for label in count if count[label] > 1)
        problem = f"differ, and some are repeated, such as {repeated!r}"
    raise ValueError(
        f"The labels of {what} ({shown(targets[:2])}) and of X ({shown(samples[:2])}) {problem}, "
        "so rows cannot be matched by label. Give both the same labels in the same order, or, if "
        f"the rows belong together by position, pass {what} as an array, {what}.to_numpy()."
    )


def _refuse_some_shared(
    target_labels: list[Any], samples: list[Any], n_shared: int, what: str
) -> None:
    known, every = set(target_labels), set(samples)
    without = [label for label in samples if label not in known]
    surplus = [label for label in target_labels if label not in every]
    differences = [
        f"{len(labels)} of {n_all} labels of {side} are not in {other}: {shown(labels)}"
        for labels, n_all, side, other in (
            (without, len(samples), "X", what),
            (surplus, len(target_labels), what, "X"),
        )
        if labels
    ]
    raise ValueError(
        f"The labels of {what} are not those of X: {'; '.join(differences)} ({n_shared} are in "
        f"both). Give both the same labels, for example with {what}.loc[X.index], or pass {what} "
        f"as an array in the order of X, {what}.to_numpy(). If a search splits both by position, "
        f"bring {what} into the order of the rows first: {what}.loc[views.labels]."
    )


def _are_in_order(labels: list[Any]) -> bool:
    """Return True if labels are the numbers 0, 1, 2, …, or these as text."""
    return list(map(str, labels)) == list(map(str, range(len(labels))))


def _array(labels: Iterable[object]) -> np.ndarray:
    """Return labels as a one-dimensional array; labels of several levels are tuples."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1:
        return labels
    return object_array(list(labels))


def _examples(labelled: dict[str, np.ndarray]) -> str:
    return "; ".join(
        f"rows of {name!r} are labelled {shown(labels[:2])}"
        if len(labels)
        else f"{name!r} is empty"
        for name, labels in labelled.items()
    )


def shown(labels: Sequence[object] | np.ndarray) -> str:
    """List the first labels, for an error message."""
    listed = ", ".join(repr(label) for label in _array(labels)[:_SHOWN].tolist())
    return listed + (", …" if len(labels) > _SHOWN else "")
