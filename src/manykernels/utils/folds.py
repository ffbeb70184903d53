"""Groups of rows, folds that keep groups together, and scores of known predictions.

Groups may be given, such as the patients of several samples each. Otherwise, if there are a few
equal rows of each kind in X, they are treated as repeated measurements of one sample; a model that
was trained on one of them has seen the others. If many rows are equal, as for a column of
categories or doses, they are treated as different samples, and new samples will be equal to them
too. :func:`groups_to_keep` makes this distinction for all evaluations on left-out samples: folds,
left-out predictions, importance and reports.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import check_cv

from .sklearn import warn_caller

#: Largest number of equal rows that count as repeats of one sample, and the same as a share of all
#: rows. With 50 or more equally frequent values of a column, each value forms a group; with fewer,
#: each row does.
MOST_REPEATS, LARGEST_SHARE = 5, 1 / 50
# Resolution of group sizes, relative to the largest group: rounding errors of sample weights must
# not change folds.
_SIZE_STEPS = 2**40
# Rounding error of products of kernel rows with a vector, in units of the precision of the
# entries: equal rows of X need not give exactly equal rows of a kernel matrix.
_ROUNDING_STEPS = 1e3


def numbered(keys: Iterable[Hashable]) -> np.ndarray:
    """Return group numbers of rows with equal keys, in the order of their first rows, (n,)."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)


def groups_to_keep(groups: np.ndarray) -> np.ndarray:
    """Return `groups` of equal rows if all are small, else a separate group for every row.

    Rows are also separate groups if all of them are equal.
    """
    n_rows, largest = len(groups), int(np.bincount(groups).max(initial=0))
    if largest == n_rows or largest > max(MOST_REPEATS, LARGEST_SHARE * n_rows):
        return np.arange(n_rows)
    return groups


def group_numbers(labels: np.ndarray) -> np.ndarray:
    """Return the numbers of groups with these labels, in the order of the labels, (n,).

    They do not depend on the order of the rows. If every row is a group, they are those of the
    rows.
    """
    try:
        unique, numbers = np.unique(labels, return_inverse=True)
    except TypeError:  # labels of several kinds cannot be compared
        texts = [f"{type(label).__name__} {label!r}" for label in labels.tolist()]
        unique, numbers = np.unique(texts, return_inverse=True)
    return np.arange(len(labels)) if len(unique) == len(labels) else numbers


def about_groups(groups: np.ndarray, *, given: bool = False) -> str:
    """Describe the rows that are kept together; empty if all groups are single rows.

    Groups are `given`, or are those of equal rows.
    """
    n_rows, n_groups = len(groups), len(np.unique(groups))
    repeats = n_rows - n_groups
    if repeats == 0:
        return ""
    if given:
        return f"{n_rows} rows of {n_groups} groups were kept together"
    verb = "repeats others and was" if repeats == 1 else "repeat others and were"
    return f"{repeats} of {n_rows} rows {verb} kept together"


def equal_kernel_rows(stack: Any) -> np.ndarray:
    """Return groups of samples whose rows are equal in all kernels, up to rounding, (n,).

    Kernel rows are considered equal if their products with a random vector are.
    """
    n_rows, n_columns, _ = stack.shape
    groups = np.zeros(n_rows, dtype=np.intp)
    direction = np.random.default_rng(0).standard_normal(n_columns)
    for j in range(stack.n_kernels):
        # Rows that differ from all others in one kernel are not compared in the next.
        rows = np.flatnonzero(np.bincount(groups)[groups] > 1)
        if not len(rows):
            break
        matrix = stack.data[j]
        # No entry of a Gram matrix is larger than the largest of its diagonal.
        size = float(np.fmax.reduce(np.abs(matrix.diagonal()), initial=0.0))
        matrix = matrix if len(rows) == n_rows else matrix[rows]
        lacking = np.zeros(len(rows), dtype=bool)
        products = matrix @ direction.astype(matrix.dtype)
        if np.isnan(products).any():
            gaps = np.isnan(matrix)
            lacking, matrix = gaps.all(axis=1), np.where(gaps, 0.0, matrix)
            products = matrix @ direction.astype(matrix.dtype)
        least = _ROUNDING_STEPS * np.finfo(matrix.dtype).eps * size * np.sqrt(n_columns)
        among = groups[rows]
        order = np.lexsort((products, lacking, among))
        differs = (np.diff(among[order]) != 0) | (np.diff(lacking[order].astype(int)) != 0)
        differs |= np.diff(products[order]) > least
        groups[rows[order]] = groups.max() + 1 + np.concatenate([[0], np.cumsum(differs)])
    return numbered(groups.tolist())


def effective_size(n_rows: int, groups: np.ndarray | None, weights: np.ndarray | None) -> float:
    """Return the effective sample size of Kish, ``(Σw)²/Σw²`` with w the weights of groups.

    It is invariant to a rescaling of the weights.
    """
    weights = np.ones(n_rows) if weights is None else weights / weights.max()
    if groups is not None:
        weights = np.bincount(np.unique(groups, return_inverse=True)[1], weights)
    return float(weights.sum() ** 2 / (weights**2).sum())


def standard_error(
    values: np.ndarray, weights: np.ndarray | None, groups: np.ndarray | None
) -> float:
    """Return the standard error of a weighted mean of values independent between groups."""
    weights = np.ones(len(values)) if weights is None else weights / weights.max()
    deviations = weights * (values - np.average(values, weights=weights))
    if groups is not None:
        deviations = np.bincount(np.unique(groups, return_inverse=True)[1], deviations)
    return float(np.sqrt(deviations @ deviations) / weights.sum())


def stratified_folds(
    labels: np.ndarray,
    groups: np.ndarray,
    n_folds: int,
    weights: np.ndarray | None = None,
    *,
    seed: int = 0,
) -> list[np.ndarray]:
    """Divide rows into up to `n_folds` stratified folds of whole groups, as even as possible.

    Groups are shuffled with a fixed seed and assigned from the largest to the smallest, each to
    the fold with the fewest rows of its class, or of its classes together; ties go to the smallest
    fold.
    With sample weights, the size of a group is its total weight, so that a row of weight two
    counts as two equal rows. A class that would be in one fold only is in none: it is needed for
    training.

    Of several labels per row, the rows with each of them and all rows take the place of classes,
    and groups with the rarest labels come first.

    Parameters
    ----------
    labels : ndarray of shape (n,) or (n, n_labels)
        Classes as 0 … c−1, or labels as 0 and 1, divided evenly among the folds.
    groups : ndarray of shape (n,)
        Group numbers.
    """
    groups = np.unique(groups, return_inverse=True)[1]
    n_groups, several = int(groups.max()) + 1, labels.ndim == 2
    n_classes = labels.shape[1] + 1 if several else int(labels.max()) + 1
    sizes = np.zeros((n_groups, n_classes))
    counts = np.ones(len(labels)) if weights is None else weights
    if several:
        np.add.at(sizes, groups, counts[:, None] * np.insert(labels, 0, 1, axis=1))
    else:
        np.add.at(sizes, (groups, labels), counts)
    sizes = np.rint(sizes * (_SIZE_STEPS / sizes.max()))
    total, main_class = sizes.sum(axis=1), sizes.argmax(axis=1)
    if several:
        total = np.max(sizes / np.maximum(sizes.sum(axis=0), 1.0), axis=1)
    order = np.random.default_rng(seed).permutation(n_groups)
    order = order[np.argsort(-total[order], kind="stable")]
    fold_of_group = np.empty(n_groups, dtype=np.intp)
    loads = np.zeros((n_folds, n_classes))
    # Groups of the smallest size and a single class are assigned at once, at the end.
    least = total.min()
    alike = (total[order] == least) & (sizes[order, main_class[order]] == least)
    n_alike = len(order) if alike.all() else int(np.argmin(alike[::-1]))
    n_alike = 0 if several else n_alike
    # Shares of each class: the sum of their squares over folds grows least.
    shares = sizes / np.maximum(sizes.sum(axis=0), 1.0) ** 2
    for group in order[: n_groups - n_alike]:
        fold = np.lexsort((loads.sum(axis=1), loads @ shares[group]))[0]
        fold_of_group[group] = fold
        loads[fold] += sizes[group]
    rest = order[n_groups - n_alike :]
    for label in range(n_classes):
        members = rest[main_class[rest] == label]
        folds = _filling(loads[:, label], loads.sum(axis=1), least, len(members))
        fold_of_group[members] = folds
        loads[:, label] += least * np.bincount(folds, minlength=n_folds)
    fold_of_row = fold_of_group[groups]
    values = np.arange(2 if several else n_classes)[:, None]
    for members in np.concatenate([column == values for column in np.atleast_2d(labels.T)]):
        if members.any() and np.ptp(fold_of_row[members]) == 0:
            fold_of_row[np.isin(groups, groups[members])] = -1
    return [fold for k in range(n_folds) if len(fold := np.flatnonzero(fold_of_row == k))]


def warn_of_untested(labels: np.ndarray, classes: np.ndarray, folds: Iterable[np.ndarray]) -> None:
    """Warn of classes that are in no fold: their rows belong together, and are all in training.

    `labels` (n,) or (n, n_labels) are positions in `classes`.
    """
    columns = labels.reshape(len(labels), -1)
    tested = columns[np.concatenate(list(folds))]
    for label, (column, seen) in enumerate(zip(columns.T, tested.T, strict=True)):
        untested = np.setdiff1d(column, seen)
        if len(untested):
            where = f" of label {label}" if labels.ndim == 2 else ""
            warn_caller(
                f"Class {classes.tolist()[untested[0]]!r}{where} has a single sample, or repeats "
                "of one: it is in every training part and no fold tests it, so that scores, and "
                "what is chosen by them, say nothing about it.",
                UserWarning,
            )


def splits_of_rows(
    cv: Any, y: np.ndarray, groups: np.ndarray | None, *, classifier: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and test rows of a splitter, or of an iterable of splits.

    `groups` are labels of the groups of rows, which no split may divide; None if there are none.
    Splitters see the events of survival targets.
    """
    y = y["event"] if y.dtype.names else y
    splitter, X = check_cv(cv, y, classifier=classifier), np.zeros((len(y), 1))
    name = f"cv={type(splitter).__name__}(...)" if hasattr(cv, "split") else "cv"
    try:
        with warnings.catch_warnings():
            # Whether such a splitter divides groups is seen from its splits.
            warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
            pairs = list(splitter.split(X, y, *([] if groups is None else [groups])))
    except (TypeError, ValueError) as error:
        if "unpack" in str(error):
            raise ValueError("cv must contain pairs (train, test) of row indices.") from error
        if groups is not None or "'groups' parameter" not in str(error):
            raise
        raise ValueError(
            f"{name} divides rows by groups, and there are none: pass groups, the label of a "
            "group for every row."
        ) from error
    splits = []
    numbers = np.arange(len(y)) if groups is None else group_numbers(groups)
    for k, (train, test) in enumerate(pairs):
        train, test = _rows_of_part(train, len(y), k), _rows_of_part(test, len(y), k)
        if groups is not None:
            divided = np.flatnonzero(np.isin(numbers[test], numbers[train]))
            if len(divided):
                raise ValueError(
                    f"{name} divides group {groups[test].tolist()[divided[0]]!r}: split {k} has "
                    "rows of it in training and test. Pass a number of folds, a splitter of "
                    "groups such as GroupKFold(5), or splits that keep groups together."
                )
        splits.append((train, test))
    return splits


def _rows_of_part(part: Any, n_rows: int, split: int) -> np.ndarray:
    """Return the rows of one part of a split, which is made of row numbers or a mask."""
    try:
        chosen = np.arange(n_rows)[np.asarray(part, dtype=None if len(part) else int)]
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"Split {split} is not made of row numbers or masks of {n_rows} rows: {error}."
        ) from error
    if chosen.ndim != 1:
        raise ValueError(
            f"Split {split} has rows of shape {chosen.shape}, not a list of numbers or a mask "
            f"of {n_rows} rows."
        )
    return chosen


def positions_among(kept: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the positions of rows among the sorted rows `kept`; others are left out."""
    return np.searchsorted(kept, rows[np.isin(rows, kept)])


def _filling(loads: np.ndarray, totals: np.ndarray, size: float, number: int) -> np.ndarray:
    """Assign equal groups to folds, each to the fold with the least load, then least total."""
    if number == 0:
        return np.empty(0, dtype=np.intp)
    # A fold gets at most its share plus its deficit relative to the fullest fold.
    ahead = int(np.ceil((loads.max() - loads.min()) / size))
    rounds = np.arange(min(number, number // len(loads) + 1 + ahead))
    levels = loads[:, None] + size * rounds
    folds = np.repeat(np.arange(len(loads)), len(rounds))
    return folds[np.lexsort((folds, totals[folds], levels.ravel()))][:number]


# -- Scores of known predictions ------------------------------------------------------------------


#: An estimator with known predictions, the targets, and sample weights (None: ones).
Answers = tuple[BaseEstimator, np.ndarray, np.ndarray | None]


def score_table(
    solved: np.ndarray,
    n_splits: int,
    judged: Callable[[tuple[int, ...]], Iterable[Answers]],
    scorer: Callable[..., float],
) -> np.ndarray:
    """Score every split at the `solved` points of a grid, (n_splits, …); NaN at other points.

    `judged` returns the predictions of all splits at the position of a point.
    """
    table = np.full((n_splits, *solved.shape), np.nan)
    for position in map(tuple, np.argwhere(solved).tolist()):
        for k, (known, truth, counts) in enumerate(judged(position)):
            options = {} if counts is None else {"sample_weight": counts}
            table[(k, *position)] = _score(scorer, known, truth, options, k)
    return table


def _score(
    scorer: Callable[..., float],
    known: BaseEstimator,
    truth: np.ndarray,
    options: dict[str, np.ndarray],
    split: int,
) -> float:
    """Return the score of one split; an error names the split, or a class that is missing."""
    if not isinstance(known, KnownClassifier):
        try:
            return scorer(known, None, truth, **options)
        except ValueError as error:
            raise ValueError(
                f"The test part of split {split} (counted from 0) cannot be scored: {error} Pass "
                "a cv with fewer splits, or another scoring."
            ) from error
    try:
        score = with_classes(scorer, known.classes)(known, None, truth, **options)
    except ValueError as error:
        lacking = lacking_class(known.classes, truth)
        if not lacking:
            raise
        raise _unscored(scorer, split, lacking) from error
    if np.isnan(score) and (lacking := lacking_class(known.classes, truth)):
        raise _unscored(scorer, split, lacking)
    return score


def _unscored(scorer: Callable[..., float], split: int, lacking: str) -> ValueError:
    function = getattr(scorer, "_score_func", scorer)
    name = getattr(function, "__name__", repr(function))
    return ValueError(
        f"{name} is not defined for the test part of split {split} (counted from 0), which "
        f"{lacking}. Pass a cv with fewer splits that keeps classes in proportion, such as cv=2, "
        "or a scoring that needs no sample of every class, such as 'neg_log_loss' or 'accuracy'."
    )


def lacking_class(classes: np.ndarray, truth: np.ndarray) -> str:
    """Describe the first class without a sample; empty if all classes have samples."""
    missing = np.setdiff1d(classes, truth)
    return f"has no sample of class {missing.tolist()[0]!r}" if len(missing) else ""


def with_classes(scorer: Any, classes: np.ndarray) -> Any:
    """Return a copy of a scorer with `labels` and `pos_label` set to all classes.

    Scores of probabilities would otherwise assume that there are only the classes of the test
    fold.
    """
    function = getattr(scorer, "_score_func", None)
    if function is None or scorer._response_method == "predict":
        return scorer
    known = {"labels": classes, "pos_label": classes[1] if len(classes) == 2 else None}
    parameters = inspect.signature(function).parameters
    missing = {
        name: value
        for name, value in known.items()
        if name in parameters
        if parameters[name].default is None
        if name not in scorer._kwargs
    }
    new = copy.copy(scorer)
    new._kwargs = {**scorer._kwargs, **missing}
    return new


def score_of(answers: Answers, scorer: Callable[..., float]) -> float:
    """Return the score of known predictions."""
    return float(score_table(np.ones((), dtype=bool), 1, lambda at: [answers], scorer)[0])


# Scores of scikit-learn between 0 and 1, between −1 and 1, and of at most 1, by the names of their
# functions; the last two are prefixes.
_SHARES = (
    *("accuracy", "balanced_accuracy", "top_k_accuracy", "average_precision", "roc_auc", "f1"),
    *("fbeta", "precision", "recall", "jaccard", "rand", "fowlkes_mallows", "completeness"),
    *("homogeneity", "v_measure", "normalized_mutual_info", "ndcg"),
)
_CORRELATIONS = ("matthews_corrcoef", "cohen_kappa", "adjusted_rand")
_AT_MOST_ONE = ("r2", "explained_variance", "d2_", "adjusted_mutual_info")
# Ranges of our scorers of survival models, which are functions, by their names. Brier scores with
# weights against censoring may be larger than one.
_OF_SURVIVAL = {
    "concordance_index_scorer": (0.0, 1.0),
    "concordance_index_ipcw_scorer": (0.0, 1.0),
    "neg_integrated_brier_score_scorer": (-np.inf, 0.0),
    "partial_likelihood_scorer": (-np.inf, 1.0),
}


def range_of(scorer: Any) -> tuple[float, float]:
    """Return the range of a scorer; infinite where it is unknown."""
    name = str(getattr(getattr(scorer, "_score_func", None), "__name__", ""))
    if not name:
        return _OF_SURVIVAL.get(getattr(scorer, "__name__", ""), (-np.inf, np.inf))
    if getattr(scorer, "_sign", 1) < 0:  # a loss, which is zero at best
        return -np.inf, 0.0
    if name.removesuffix("_score") in _SHARES:
        return 0.0, 1.0
    if name.startswith(_CORRELATIONS):
        return -1.0, 1.0
    return -np.inf, 1.0 if name.startswith(_AT_MOST_ONE) else np.inf


class KnownClassifier(ClassifierMixin, BaseEstimator):
    """Base class of classifiers with known predictions, for scorers; methods ignore `X`."""

    classes: np.ndarray

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> np.ndarray:
        return self.classes

    def fit(self, X: object, y: object) -> Self:
        return self

    def score(self, X: object, y: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
        """Return the accuracy; that of scikit-learn checks labels for longer than a fit takes."""
        return float(np.average(self.predict(X) == y, weights=sample_weight))


class KnownProbabilities(KnownClassifier):
    """Classifier with known log-probabilities, (n, c)."""

    def __init__(self, classes: np.ndarray, logs: np.ndarray):
        self.classes = classes
        self.logs = logs

    def decision_function(self, X: object) -> np.ndarray:
        return self.logs[:, 1] - self.logs[:, 0] if len(self.classes) == 2 else self.logs

    def predict(self, X: object) -> np.ndarray:
        return self.classes[self.logs.argmax(axis=1)]

    def predict_proba(self, X: object) -> np.ndarray:
        return np.exp(self.logs)


class KnownValues(RegressorMixin, BaseEstimator):
    """Regressor with known predictions, for scorers; its methods ignore `X`."""

    def __init__(self, values: np.ndarray):
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: object, y: object) -> KnownValues:
        return self

    def predict(self, X: object) -> np.ndarray:
        return self.values
