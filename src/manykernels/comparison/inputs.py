"""What is passed to :func:`~manykernels.compare`, checked: methods, data, splits, scoring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils.validation import check_consistent_length

from ..estimators._inputs import labels_of_rows
from ..estimators._reading import may_lack_views, unchecked_stack
from ..estimators._splits import is_number, rows_of_part
from ..inspection.study import refuse_split
from ..kernels import KernelStack, Views
from ..kernels.matching import matched_targets
from ..kernels.views import are_views, matched_views
from ..metrics.comparison import Split, five_by_two_folds, repeated_folds
from .paired import FIVE_BY_TWO, RESAMPLED

# Without cv: five folds, twice. With J splits, five folds detect differences of t_{J−1} times
# √(1/J + 1/4) standard deviations: 1.9 if run once, 1.3 twice, 1.2 three times, 1.0 for ever.
_FOLDS, _REPEATS = 5, 2


# -- methods ---------------------------------------------------------------------------------


def checked_methods(methods: Any) -> dict[str, Any]:
    """Estimators by name."""
    if isinstance(methods, Mapping):
        pairs = list(methods.items())
    elif isinstance(methods, Iterable) and not isinstance(methods, str):
        pairs = _named(list(methods))
    else:
        raise TypeError(
            "methods must be a dict of estimators by name, or a list of them; got "
            f'{type(methods).__name__}. For a single one: {{"name": estimator}}.'
        )
    if not pairs:
        raise ValueError("There are no methods to compare.")
    found: dict[str, Any] = {}
    for name, estimator in pairs:
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"Names of methods are strings, got {name!r}.")
        if name in found:
            raise ValueError(f"Two methods are called {name!r}: give each a name of its own.")
        found[name] = _checked_method(name, estimator)
    return found


def _named(methods: list[Any]) -> list[tuple[Any, Any]]:
    """Pairs as they are; others are called by their class, numbered if there are several."""
    kinds = [None if isinstance(one, tuple) else type(one).__name__ for one in methods]
    pairs = []
    for i, one in enumerate(methods):
        if isinstance(one, tuple):
            if len(one) != 2:
                raise TypeError(f"A method is a pair (name, estimator), got {one!r}.")
            pairs.append(one)
        elif kinds.count(kinds[i]) > 1:
            pairs.append((f"{kinds[i]} {kinds[: i + 1].count(kinds[i])}", one))
        else:
            pairs.append((kinds[i], one))
    return pairs


def _checked_method(name: str, estimator: Any) -> Any:
    if isinstance(estimator, str) or not hasattr(estimator, "fit"):
        raise TypeError(f"Method {name!r} is a {type(estimator).__name__}, not an estimator.")
    try:
        copy = clone(estimator)
        get_tags(copy)
    except Exception as error:
        raise TypeError(
            f"Method {name!r} cannot be copied for every split, as scikit-learn's clone does: "
            f"{error}"
        ) from error
    return copy


def of_classes(methods: Mapping[str, Any]) -> bool:
    """Whether the methods predict classes; they must all be of one kind."""
    kinds = {name: is_classifier(one) for name, one in methods.items()}
    if len(set(kinds.values())) > 1:
        first, second = (
            next(name for name in kinds if kinds[name] is kind) for kind in (True, False)
        )
        raise ValueError(
            f"{first!r} is a classifier and {second!r} is not: methods that are compared predict "
            "the same."
        )
    return next(iter(kinds.values()))


# -- data ------------------------------------------------------------------------------------


def checked_data(methods: Mapping[str, Any], X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """X as all methods take it and scikit-learn splits it, and y with it, row by row."""
    if y is None:
        raise ValueError("compare requires y, what is to be predicted.")
    pairwise = {name: get_tags(one).input_tags.pairwise for name, one in methods.items()}
    may_lack = any(map(may_lack_views, methods.values()))
    if isinstance(X, Mapping) and all(pairwise.values()):
        X = unchecked_stack(X, gram=True)
    if isinstance(X, KernelStack) or np.ndim(X if isinstance(X, np.ndarray) else 0) == 3:
        for name, takes_kernels in pairwise.items():
            if not takes_kernels:
                raise ValueError(
                    f"X holds kernel matrices, which {name!r} does not take: pass "
                    'kernels="precomputed" to it.'
                )
    elif are_views(X):
        X, y, _ = matched_views(X, y, may_lack=may_lack)
    if not isinstance(X, Views):
        (y,) = matched_targets(labels_of_rows(X), y=y)
    targets = np.asarray(y)
    if targets.ndim == 0:
        raise ValueError(f"y must have one entry per sample, got {y!r}.")
    check_consistent_length(X, targets)
    return X, targets


# -- splits ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Design:
    """Splits, and how they were made: ``"5x2"`` or ``"resampled"``."""

    splits: list[Split]
    kind: str

    @classmethod
    def of(
        cls,
        cv: Any,
        y: np.ndarray,
        groups: np.ndarray,
        *,
        classes: bool,
        random_state: Any,
        again: bool,
    ) -> Design:
        """The splits of `cv`, drawn once for all methods; folds by number hold whole groups.

        If they are to be the same `again`, in another call, those that are not are refused.
        """
        if isinstance(cv, str) and cv != FIVE_BY_TWO:
            raise ValueError(
                f'cv must be a number of folds, a splitter, splits or "5x2"; got {cv!r}.'
            )
        options = {"classes": classes, "random_state": random_state, "groups": groups}
        if cv is None or is_number(cv):
            number, repeats = (_FOLDS, _REPEATS) if cv is None else (int(cv), 1)
            draw: Any = partial(repeated_folds, number, repeats, y, **options)
        elif isinstance(cv, str):
            draw = partial(five_by_two_folds, y, **options)
        else:
            draw = partial(_drawn, check_cv(cv, y, classifier=classes), y)
        splits = draw()
        if not splits:
            raise ValueError("cv has no splits.")
        if again and not _same(splits, draw()):
            raise ValueError(
                "cv draws other splits in every call, so that finished cells could not be found "
                "again: give it a seed, such as random_state=0, or leave out path."
            )
        return cls(splits, FIVE_BY_TWO if isinstance(cv, str) else RESAMPLED)


def _drawn(splitter: Any, y: np.ndarray) -> list[Split]:
    every, splits = np.arange(len(y)), []
    try:
        given = list(splitter.split(np.zeros((len(y), 1)), y))
    except (TypeError, ValueError) as error:
        if "unpack" in str(error):
            raise ValueError("cv must hold pairs (train, test) of row numbers.") from error
        if "'groups' parameter" not in str(error):
            raise
        name = type(splitter).__name__
        raise ValueError(
            f"cv={name}(...) divides by groups, which compare is not given: pass the splits, "
            f"cv=list({name}(...).split(X, y, groups))."
        ) from error
    for k, parts in enumerate(given):
        train, test = (rows_of_part(part, len(y), every, k) for part in parts)
        refuse_split(k, train, test)
        splits.append((train, test))
    return splits


def _same(first: list[Split], second: list[Split]) -> bool:
    return len(first) == len(second) and all(
        np.array_equal(one, other)
        for pair, pair_again in zip(first, second, strict=True)
        for one, other in zip(pair, pair_again, strict=True)
    )


# -- scoring ---------------------------------------------------------------------------------


def checked_scoring(scoring: Any, methods: Mapping[str, Any]) -> Any:
    """Scorers by name, or a function, as ``cross_validate`` takes them.

    By default accuracy or R², and not what ``estimator.score`` is: that of a search may be
    another score than that of the others.
    """
    if scoring is None:
        if of_classes(methods):
            scoring = "accuracy"
        elif all(map(is_regressor, methods.values())):
            scoring = "r2"
        else:
            raise ValueError("The methods are neither classifiers nor regressors: pass scoring.")
    if callable(scoring):
        return scoring
    if isinstance(scoring, str):
        scoring = [scoring]
    if not isinstance(scoring, Mapping):
        names = list(scoring)
        if not all(isinstance(name, str) for name in names):
            raise ValueError(
                f"A list of scorings has their names, got {names!r}; functions are passed in a "
                "dict by name."
            )
        if len(set(names)) < len(names):
            raise ValueError(f"A scoring is named twice: {', '.join(names)}.")
        scoring = {name: name for name in names}
    if not scoring:
        raise ValueError("There is no scoring to compare by.")
    first = next(iter(methods.values()))
    return {
        str(name): get_scorer(one) if isinstance(one, str) else check_scoring(first, one)
        for name, one in scoring.items()
    }
