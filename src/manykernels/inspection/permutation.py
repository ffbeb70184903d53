"""Fall of held-out scores if values of columns are exchanged between samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from ..kernels import KernelStack
from ..kernels.tables import is_frame
from ..utils.sklearn import safe_indexing
from .column_data import Columns, ColumnsOfView, Measured
from .effects import linear_effects
from .intervals import Intervals
from .scoring import Answers
from .study import ClassLogs, Splits

# Rows whose values are exchanged by a permutation that preserves what others predict.
_ALIKE = 6


class Permutation:
    """Held-out losses of models if columns of the held-out rows are permuted."""

    def __init__(self, table: Columns, plain: Any, rng: np.random.RandomState) -> None:
        self.table, self.plain, self.rng = table, plain, rng
        self.begun, self.study = table.begun, table.begun.study
        self.predicted = self._predicted()

    def _predicted(self) -> np.ndarray | None:
        """Return what other columns predict of each column of Z, (n_rows, n_columns of Z)."""
        Z, y = self.table.Z, self.table.targets[:, 0]
        if not Z.shape[1]:
            return None
        n_all = Z.shape[1]
        shares = np.full(n_all, 1.0 / n_all)
        effects = linear_effects(Z, y, Z @ Z.T / n_all, shares, self.table.weights)
        sizes = np.einsum("ij,ij->j", effects.contrasts, effects.contrasts)
        predicted: np.ndarray = Z - effects.contrasts / sizes
        return predicted

    def donors(self, members: np.ndarray, place: int) -> np.ndarray:
        """Return for each row the row whose values of a column, or group, it is given.

        Values of a single column of numbers are exchanged between rows for which the other columns
        predict nearly the same value; other values between any rows.
        """
        n_rows = len(self.study.y)
        if place < 0 or len(members) > 1 or self.predicted is None:
            return self.rng.permutation(n_rows)
        order = np.argsort(self.predicted[:, place], kind="stable")
        donors = np.empty(n_rows, int)
        start = self.rng.randint(_ALIKE)
        for alike in np.split(order, range(start, n_rows, _ALIKE)):
            # In a circle, so that no row keeps its value.
            circle = self.rng.permutation(alike)
            donors[circle] = np.roll(circle, 1)
        return donors

    def models(self, splits: Splits) -> list[tuple[Any, np.ndarray, np.ndarray]]:
        """Fit the models of the folds."""
        return [(self.study.fit_rows(self.plain, train), train, test) for train, test in splits]

    def losses(
        self,
        models: list[tuple[Any, np.ndarray, np.ndarray]],
        view: ColumnsOfView | None = None,
        members: list[int] | None = None,
        donors: np.ndarray | None = None,
    ) -> Answers:
        """Return held-out predictions; with donors, after columns of a view are replaced."""
        study = self.study
        y, scoring = study.y, study.scoring
        predictions = np.zeros_like(y) if is_classifier(self.plain) else np.zeros(len(y))
        judged = np.zeros(len(y), bool)
        logs = ClassLogs(y) if scoring.needs_probabilities else None
        for model, train, test in models:
            rows = study.held_out(test, train)
            if view is not None and members is not None and donors is not None:
                if study.table is None:
                    rows = self._replaced(rows, view, members, donors, train, test)
                else:
                    rows = _with_values_of(rows, view, members, donors[test])
            predictions[test], judged[test] = model.predict(rows), True
            if logs is not None:
                logs.add(model, model.predict_log_proba(rows), test)
        return Answers(predictions, judged, *(() if logs is None else logs.values))

    def _replaced(
        self,
        block: KernelStack,
        view: ColumnsOfView,
        members: list[int],
        donors: np.ndarray,
        train: np.ndarray,
        test: np.ndarray,
    ) -> KernelStack:
        """Return the block between test and training rows with other values of some columns."""
        X, union = self.begun.data.X, self.begun.source.union
        new = _with_values_of(safe_indexing(X, test), view, members, donors[test])
        part = union.subset(np.array(view.kernels))(new, safe_indexing(X, train))
        data = np.array([block.kernel(j) for j in range(block.n_kernels)])
        row_diag = np.array(block.row_diag)
        data[view.kernels], row_diag[view.kernels] = part.data, part.row_diag
        return KernelStack(
            data, block.names, gram=False, row_diag=row_diag, col_diag=block.col_diag
        )


def _with_values_of(rows: Any, view: ColumnsOfView, members: list[int], donors: np.ndarray) -> Any:
    """Return rows of X with the values that other rows have in some columns of a view."""
    if view.view:
        tables = {name: rows[name] for name in rows}
        tables[view.view] = _exchanged(tables[view.view], view.table, members, donors)
        return tables
    return _exchanged(rows, view.table, members, donors)


def _exchanged(rows: Any, table: Any, members: list[int], donors: np.ndarray) -> Any:
    """Return a table whose columns `members` have the values of the rows `donors` of another."""
    if getattr(rows, "ndim", 2) == 1:
        return safe_indexing(np.asarray(table)[:, 0], donors)
    if sparse.issparse(rows):
        change = table.tocsc()[:, members][donors] - rows.tocsc()[:, members]
        places = np.zeros((len(members), rows.shape[1]))
        places[range(len(members)), members] = 1.0
        # Of the type of the rows, whose indices have a size that all functions take.
        return (rows + type(rows)(change @ type(rows)(places))).astype(rows.dtype)
    if hasattr(rows, "iloc"):
        new = rows.copy()
        for j in members:
            new.isetitem(j, table.iloc[:, j].array.take(donors))
        return new
    if is_frame(rows):
        frame: Any = rows
        return frame.with_columns([table.to_series(j)[donors.tolist()] for j in members])
    new = rows.copy()
    new[:, members] = table[np.ix_(donors, np.array(members))]
    return new


def by_permutation(
    table: Columns,
    plain: Any,
    splits: Splits,
    n_repeats: int,
    confidence: float,
    counts: Iterator[np.ndarray],
    note: Callable[[str], None],
) -> tuple[Measured, list[np.ndarray]]:
    """Return the fall of the held-out score if each column is permuted."""
    permutation = Permutation(table, plain, table.begun.rng)
    study, scoring = table.begun.study, table.begun.study.scoring
    items = items_of(table)
    models = permutation.models(splits)
    plain_answers = permutation.losses(models)
    before = scoring.of(study.y, plain_answers, study.weights)
    share = float(np.mean([study.weights[train].sum() for train, _ in splits]))
    intervals = Intervals(
        study.weights,
        confidence,
        share / float(study.weights.sum()),
        groups=study.groups,
        events=study.events,
        most=scoring.most,
    )
    falls = []
    for view, members, chosen, place in items:
        after = np.mean(
            [
                scoring.of(
                    study.y,
                    permutation.losses(models, view, members, permutation.donors(chosen, place)),
                    study.weights,
                )
                for _ in range(n_repeats)
            ],
            axis=0,
        )
        falls.append(intervals.of_paired(after - before))
        note(f"column {len(falls)} of {len(items)}")
    values = np.array(falls)
    resampled = []
    for k, resample in enumerate(counts):
        train, test = np.flatnonzero(resample), np.flatnonzero(resample == 0)
        halves = permutation.models([(train, test)])
        base = scoring.of(study.y, permutation.losses(halves), study.weights)[test].mean()
        resampled.append(
            np.array(
                [
                    scoring.of(
                        study.y,
                        permutation.losses(
                            halves, view, members, permutation.donors(chosen, place)
                        ),
                        study.weights,
                    )[test].mean()
                    - base
                    for view, members, chosen, place in items
                ]
            )
        )
        note(f"half-sample {k + 1}")
    return Measured(values[:, 0], values[:, 1:3], values[:, 3]), resampled


def items_of(table: Columns) -> list[tuple[ColumnsOfView, list[int], np.ndarray, int]]:
    """Return the view and positions of each column or group, and the place in Z, or −1."""
    items = []
    start = 0
    for view in table.columns:
        numeric = view.numbers() is not None
        for members in view.members:
            chosen = start + np.array(members)
            place = int(table.place[chosen[0]]) if numeric and len(members) == 1 else -1
            items.append((view, members, chosen, place))
        start += view.table.shape[1] if numeric else 0
    return items
