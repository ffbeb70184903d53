"""Losses of samples that a model has not seen, for any set of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import check_cv

from .. import estimators
from ..estimators.base import KernelEstimator
from ..estimators.gated import GateParameters
from ..estimators.inputs import groups_of
from ..estimators.prediction import KernelClassifier, chosen_classes
from ..estimators.search import rows_of_part
from ..kernels import KernelStack, KernelUnion, Views
from ..kernels.composition import OfView
from ..solvers.base import DEFAULT_SOLVER, as_solver
from ..utils.folds import stratified_folds
from .intervals import Mean

# -- Losses of single samples, and the scores that are their means --------------------------------


@dataclass(frozen=True)
class Answers:
    """What models answered about samples that they have not seen.

    Attributes
    ----------
    predictions : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Classes, or numbers.
    judged : ndarray of bool, (n_rows,)
        Rows that were left or held out; the predictions of others mean nothing.
    log_losses : ndarray of shape (n_rows,) or None
        ``−log P`` of the true class, if there are probabilities.
    """

    predictions: np.ndarray
    judged: np.ndarray
    log_losses: np.ndarray | None = None

    def spread(self, rows: np.ndarray, n_rows: int) -> Answers:
        """The same answers as those about some of `n_rows` rows."""
        predictions = np.zeros((n_rows, *self.predictions.shape[1:]), self.predictions.dtype)
        predictions[rows] = self.predictions
        judged = np.zeros(n_rows, bool)
        judged[rows] = self.judged
        if self.log_losses is None:
            return Answers(predictions, judged)
        log_losses = np.full(n_rows, np.nan)
        log_losses[rows] = self.log_losses
        return Answers(predictions, judged, log_losses)


#: From y, answers and the weights of the samples to a loss per row, (n_rows,).
Losses = Callable[[np.ndarray, Answers, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Scoring:
    """A score that is ``best − mean loss``: the larger the better.

    Attributes
    ----------
    name : str
    losses : callable
    best : float
        Score of a model without losses.
    hit_or_miss : bool
        Whether every loss is 0 or 1.
    needs_probabilities : bool
    """

    name: str
    losses: Losses
    best: float = 0.0
    hit_or_miss: bool = False
    needs_probabilities: bool = False

    def of(self, y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
        """Loss of every row, NaN of those that were not judged."""
        losses = np.full(len(y), np.nan)
        losses[answers.judged] = self.losses(y, answers, weights)[answers.judged]
        return losses

    def score(self, mean_loss: Mean) -> Mean:
        """The score, from the mean loss and its interval."""
        return mean_loss.times(-1.0, self.best)


def _misses(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    return (y != answers.predictions).astype(float)


def _log_losses(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    assert answers.log_losses is not None
    return answers.log_losses


def _errors(y: np.ndarray, answers: Answers) -> np.ndarray:
    """One column per target, (n_rows, n_targets)."""
    return y.reshape(len(y), -1) - answers.predictions.reshape(len(y), -1)


def _absolute(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    return np.abs(_errors(y, answers)).mean(axis=1)


def _squared(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    return np.square(_errors(y, answers)).mean(axis=1)


def _unexplained(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
    """Squared errors over the variance of each target, whose mean is 1 − R²."""
    # The variance of all samples, so that differences between models are of one unit.
    share, targets = weights / weights.sum(), y.reshape(len(y), -1)
    if not np.ptp(targets, axis=0).all():
        raise ValueError('scoring="r2" is not defined: all values of y are equal.')
    variances = share @ (targets - share @ targets) ** 2
    return np.mean(_errors(y, answers) ** 2 / variances, axis=1)


#: Scores by the names that scikit-learn gives them.
OF_CLASSES = [
    Scoring("accuracy", _misses, 1.0, hit_or_miss=True),
    Scoring("neg_log_loss", _log_losses, needs_probabilities=True),
]
OF_NUMBERS = [
    Scoring("r2", _unexplained, 1.0),
    Scoring("neg_mean_squared_error", _squared),
    Scoring("neg_mean_absolute_error", _absolute),
]


def checked_scoring(given: Any, *, of_classes: bool) -> Scoring:
    """The score of that name, the first one if none is given, or one of a callable's losses."""
    known = OF_CLASSES if of_classes else OF_NUMBERS
    if given is None:
        return known[0]
    if callable(given):
        return Scoring(getattr(given, "__name__", type(given).__name__), _by(given))
    for one in known:
        if one.name == given:
            return one
    names = ", ".join(repr(one.name) for one in known)
    raise ValueError(
        f"scoring={given!r} cannot be used here: intervals need a loss of every single sample. "
        f"Choose one of {names}, or pass a function loss(y, predictions) that returns an array "
        "with one loss per sample."
    )


def _by(loss: Callable[[Any, Any], Any]) -> Losses:
    """Losses by a function of y and predictions, which is shown the judged rows only."""

    def losses(y: np.ndarray, answers: Answers, weights: np.ndarray) -> np.ndarray:
        judged = answers.judged
        found = np.asarray(loss(y[judged], answers.predictions[judged]), dtype=np.float64)
        if found.shape != (judged.sum(),) or not np.isfinite(found).all():
            raise ValueError(
                f"scoring must return one finite loss for each of {judged.sum()} samples, an "
                f"array of shape ({judged.sum()},); it returned one of shape {found.shape}"
                f"{'' if np.isfinite(found).all() else ' that has NaN or infinity'}."
            )
        every = np.full(len(y), np.nan)
        every[judged] = found
        return every

    return losses


# -- Estimators as they are asked here: on precomputed kernels, with or without a search ----------


# How the parameters of regularisation change where all kernels are multiplied by n^(−1/p): the
# same machines come from the kernels as they are with reg · n^(1/p), or with C · n^(−1/p).
_SCALED = {"reg": 1.0, "C": -1.0}
# What a search has chosen, where the list to choose from has the name of the parameter itself.
_CHOSEN = {"regions": "n_regions_"}


def checked_learner(estimator: Any) -> Any:
    """A copy of the estimator for precomputed kernels, if it learns a weight per kernel."""
    able = (
        isinstance(estimator, KernelEstimator)
        # A gate weights kernels differently at every sample.
        and not isinstance(estimator, GateParameters)
        and (is_classifier(estimator) or is_regressor(estimator))
        and {"p", "ps"} & estimator.get_params(deep=False).keys()
    )
    if not able:
        got = f"the class {estimator.__name__}" if isinstance(estimator, type) else estimator
        raise ValueError(
            "view_importance takes classifiers and regressors of this package that learn one "
            f"weight per kernel at a norm p, such as MKFDA() or MKSVR(); got {got}."
        )
    return clone(estimator).set_params(kernels="precomputed", verbose=False)


def searches(learner: Any) -> bool:
    """Whether the estimator chooses its parameters by cross-validation."""
    return "ps" in learner.get_params(deep=False)


def at_chosen_norm(learner: Any, fitted: Any) -> Any:
    """The estimator with p as it was chosen by a fit; a search still chooses the rest."""
    return clone(learner).set_params(ps=[fitted.p_]) if searches(learner) else learner


def _kind_without_search(learner: Any) -> type:
    """The class of the estimator, or that of the same name without CV."""
    if not searches(learner):
        return type(learner)
    kind: type = getattr(estimators, type(learner).__name__.removesuffix("CV"))
    return kind


def without_search(learner: Any, fitted: Any) -> Any:
    """The estimator, or that of the same name without CV at what the search has chosen."""
    if not searches(learner):
        return learner
    plain = _kind_without_search(learner)()
    given, own = learner.get_params(deep=False), plain.get_params(deep=False)
    chosen = {
        name: getattr(fitted, f"{name}_")
        for name in own
        if name not in given and hasattr(fitted, f"{name}_")
    }
    given = {name: value for name, value in given.items() if name not in _CHOSEN}
    chosen |= {name: getattr(fitted, _CHOSEN[name]) for name in own.keys() & _CHOSEN.keys()}
    if any(np.ndim(value) for value in chosen.values()):
        raise ValueError(
            f"{type(learner).__name__} chose parameters for each of several targets: ask for the "
            "importance of one target at a time, or let the targets share their weights."
        )
    return plain.set_params(**{name: given[name] for name in own if name in given}, **chosen)


def refuse_without_probabilities(learner: Any, scoring: Scoring) -> None:
    """Raise if the score needs probabilities that the estimator does not have."""
    kind = _kind_without_search(learner)
    if scoring.needs_probabilities and not (
        issubclass(kind, KernelClassifier) and kind._probabilities == "scores"
    ):
        raise ValueError(
            f"scoring={scoring.name!r} needs probabilities, which {kind.__name__} does not have: "
            'use scoring="accuracy", or MKFDA.'
        )


def of_plain_sum(learner: Any, n_kernels: int) -> Any:
    """The estimator at p = ∞, whose kernels all have the weight 1; None if it is that already.

    A search chooses its regularisation again. Elsewhere the sum is given the same budget as the
    weights: ``n^(−1/p)`` for each of n kernels, by way of the regularisation.
    """
    if searches(learner):
        return clone(learner).set_params(ps=[np.inf])
    params = learner.get_params(deep=False)
    if np.isinf(params["p"]):
        return None
    scaled = {
        name: params[name] * n_kernels ** (power / params["p"])
        for name, power in _SCALED.items()
        if not isinstance(params.get(name, ""), str)
    }
    if "solver" in params:
        scaled["solver"] = DEFAULT_SOLVER
    return clone(learner).set_params(p=np.inf, **scaled)


def leaves_out_honestly(fitted: Any) -> bool:
    """Whether a fit tells what it would have answered about each sample without it.

    A search does by its folds. In closed form it does not if it has seen the sample in another
    way: when axes for denoising were found, λ was learnt with the weights, or weights are held.
    """
    if hasattr(fitted, "test_fold_") and fitted.n_splits_ > 1:
        return True
    left_out = hasattr(fitted, "left_out_log_proba_") or hasattr(fitted, "left_out_predictions_")
    return (
        left_out
        and getattr(fitted, "denoise", None) is None
        and getattr(fitted, "reg", None) != "joint"
        and not as_solver(getattr(fitted, "solver", DEFAULT_SOLVER)).by_columns
    )


@dataclass(frozen=True)
class LeftOutAnswers:
    """What a fit says of its training rows by models that have not seen them.

    Attributes
    ----------
    predictions : ndarray of shape (n_rows,) or (n_rows, n_targets)
    log_proba : ndarray of shape (n_rows, n_classes) or None
    known : ndarray of bool, (n_rows,)
        Rows that were left out; the predictions of others mean nothing.
    rows : ndarray of int or None
        Their numbers among the training rows; None for all of them.
    """

    predictions: np.ndarray
    log_proba: np.ndarray | None
    known: np.ndarray
    rows: np.ndarray | None


def left_out_answers(fitted: Any) -> LeftOutAnswers | None:
    """Honest answers of a fit about its training rows; None if it has none."""
    if not leaves_out_honestly(fitted):
        return None
    rows = getattr(fitted, "left_out_rows_", None)
    if hasattr(fitted, "left_out_predictions_"):
        values = fitted.left_out_predictions_
        return LeftOutAnswers(values, None, _finite_rows(values), rows)
    if hasattr(fitted, "left_out_decisions_"):
        decisions = fitted.left_out_decisions_
        known, logs = _finite_rows(decisions), fitted.calibration_.log_probabilities(decisions)
        chosen = chosen_classes(np.nan_to_num(decisions))
    else:
        logs = fitted.left_out_log_proba_
        known = _finite_rows(logs)
        chosen = np.where(np.isnan(logs), -np.inf, logs).argmax(axis=1)
    return LeftOutAnswers(fitted.classes_[chosen], logs, known, rows)


def _finite_rows(values: np.ndarray) -> np.ndarray:
    finite: np.ndarray = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    return finite


# -- Which kernels belong to which view -----------------------------------------------------------


@dataclass(frozen=True)
class ViewKernels:
    """Kernels of one view, as positions in a stack.

    Attributes
    ----------
    name : str
    kernels : ndarray of int
        All that see the view, and go when it is left out.
    own : ndarray of int
        Those that see no other view; they stay when it is used alone.
    """

    name: str
    kernels: np.ndarray
    own: np.ndarray


def views_of(
    stack: KernelStack, union: KernelUnion | None, X: Any, groups: Any
) -> list[ViewKernels]:
    """The `groups`, or else the views of X, or else every kernel for itself.

    `union` has the kernels of the stack unless they are precomputed. A precomputed stack may say
    itself which view each kernel is of.
    """
    names = stack.names
    if groups is not None:
        views = _of_groups(groups, names)
    elif isinstance(X, Views) and union is not None:
        views = _of_tables(union, X)
    elif union is None and stack.views is not None:
        pairs = list(zip(stack.views, names, strict=True))
        named = {view: [name for own, name in pairs if own == view] for view in stack.views}
        views = _of_groups(named, names)
    else:
        views = [ViewKernels(name, np.array([j]), np.array([j])) for j, name in enumerate(names)]
    for view in views:
        if len(view.kernels) == len(names):
            others = "it is the only one" if len(views) == 1 else "all kernels belong to it"
            raise ValueError(
                f"View {view.name!r} cannot be left out: {others}. Importance is a comparison of "
                "at least two views."
            )
    return views


def _of_tables(union: KernelUnion, X: Views) -> list[ViewKernels]:
    seen = [_views_seen(kernel) for kernel in dict(union.kernels).values()]
    views = []
    for name in X:
        kernels = [j for j, own in enumerate(seen) if name in own]
        if not kernels:
            raise ValueError(
                f"View {name!r} has no kernel: add one, such as RBF().of({name!r}), or leave the "
                "view out of X."
            )
        own = [j for j in kernels if seen[j] == {name}]
        views.append(ViewKernels(name, np.array(kernels), np.array(own, dtype=int)))
    return views


def _views_seen(kernel: Any) -> set[str]:
    """Names of the views that a kernel compares, alone or as a sum or product."""
    if isinstance(kernel, OfView):
        return {kernel.view}
    parts = [getattr(kernel, side, None) for side in ("left", "right")]
    return {name for part in parts if part is not None for name in _views_seen(part)}


def _of_groups(groups: Any, names: list[str]) -> list[ViewKernels]:
    if not isinstance(groups, Mapping) or not groups:
        raise ValueError(
            "groups must be a dict from names of views to lists of kernel names, such as "
            f'{{"a view": [{names[0]!r}]}}; got {groups!r}.'
        )
    members = {}
    for view, given in groups.items():
        chosen = [given] if isinstance(given, str) else list(given)
        if not chosen:
            raise ValueError(f"Group {view!r} has no kernels.")
        for name in chosen:
            if name not in names:
                raise ValueError(
                    f"Group {view!r} has a kernel {name!r} that there is none of; the kernels are "
                    f"{', '.join(map(repr, names))}."
                )
        members[str(view)] = {names.index(name) for name in chosen}
    views = []
    for view, kernels in members.items():
        others = set().union(*(own for name, own in members.items() if name != view))
        views.append(ViewKernels(view, _sorted(kernels), _sorted(kernels - others)))
    return views


def _sorted(kernels: set[int]) -> np.ndarray:
    return np.array(sorted(kernels), dtype=int)


#: Training and test rows of every fold.
Splits = list[tuple[np.ndarray, np.ndarray]]

# Folds with cv=None where samples cannot be left out in closed form, as in scikit-learn.
DEFAULT_FOLDS = 5


@dataclass(frozen=True)
class Study:
    """Kernels that are computed once, and the samples that models are judged by.

    Attributes
    ----------
    stack : KernelStack
        All kernels of all rows.
    y : ndarray
    counts : ndarray of shape (n_rows,) or None
        How many samples each row stands for; None for one.
    scoring : Scoring
    splits : list of pairs of ndarray, or None
        Folds. Without them samples are left out by the fits themselves: in closed form or, by a
        search, in its `n_folds` folds.
    n_folds : int
    """

    stack: KernelStack
    y: np.ndarray
    counts: np.ndarray | None
    scoring: Scoring
    splits: Splits | None
    n_folds: int = 1

    @property
    def weights(self) -> np.ndarray:
        """`counts`, or ones."""
        return np.ones(len(self.y)) if self.counts is None else self.counts

    @property
    def groups(self) -> np.ndarray:
        """Groups of rows that are left out together."""
        return groups_of(self.stack)

    @property
    def train_share(self) -> float:
        """Part of the samples that the judged models are learnt from."""
        if self.splits is None:
            return 1.0 - 1.0 / (self.n_folds if self.n_folds > 1 else len(np.unique(self.groups)))
        weights = self.weights
        return float(np.mean([weights[train].sum() for train, _ in self.splits]) / weights.sum())

    def fit(self, learner: Any, kernels: Any, counts: np.ndarray | None = None) -> Any:
        """A new model on some of the kernels, of all rows or with other counts of them."""
        counts = self.counts if counts is None else counts
        return clone(learner).fit(self.stack.select(kernels), self.y, counts)

    def losses(self, learner: Any, kernels: Any, fitted: Any = None) -> np.ndarray:
        """Loss of every row by models on some of the kernels that have not seen it.

        `fitted` is the model of all rows, if it is known. A search is made by all rows; folds are
        then held out at what it has chosen.
        """
        rows = self._rows_with(kernels)
        if len(rows) == len(self.y):
            answers = self._answers(learner, kernels, fitted)
        else:
            answers = self._of(rows)._answers(learner, kernels, None).spread(rows, len(self.y))
        return self.scoring.of(self.y, answers, self.weights)

    def _rows_with(self, kernels: Any) -> np.ndarray:
        """Rows that have some of the kernels; in others all are NaN."""
        diagonals = np.array([np.diagonal(matrix) for matrix in self.stack.data])[kernels]
        return np.flatnonzero(~np.isnan(diagonals).all(axis=0))

    def _of(self, rows: np.ndarray) -> Study:
        """The same with some of the rows; folds that test none of them are left out."""
        number = np.full(len(self.y), -1)
        number[rows] = np.arange(len(rows))
        splits = self.splits
        if splits is not None:
            parts = [(number[train], number[test]) for train, test in splits]
            splits = [(train[train >= 0], test[test >= 0]) for train, test in parts]
            splits = [(train, test) for train, test in splits if len(test)]
        counts = None if self.counts is None else self.counts[rows]
        stack = self.stack[np.ix_(rows, rows)]
        return replace(self, stack=stack, y=self.y[rows], counts=counts, splits=splits)

    def _answers(self, learner: Any, kernels: Any, fitted: Any) -> Answers:
        if self.splits is None:
            model = self.fit(learner, kernels) if fitted is None else fitted
            return _left_out(model, self.y)
        if searches(learner):
            fitted = self.fit(learner, kernels) if fitted is None else fitted
            learner = without_search(learner, fitted)
        return self._held_out(learner, self.stack.select(kernels), self.splits)

    def _held_out(self, learner: Any, stack: KernelStack, splits: Splits) -> Answers:
        """Answers by models without the fold of each row."""
        y, counts = self.y, self.counts
        predictions, judged = np.zeros_like(y), np.zeros(len(y), bool)
        log_losses = np.full(len(y), np.nan) if self.scoring.needs_probabilities else None
        for train, test in splits:
            own = None if counts is None else counts[train]
            model = clone(learner).fit(stack[np.ix_(train, train)], y[train], own)
            block = stack[np.ix_(test, train)]
            predictions[test], judged[test] = model.predict(block), True
            if log_losses is not None:
                log_losses[test] = _sample_log_losses(
                    model, model.predict_log_proba(block), y[test]
                )
        return Answers(predictions, judged, log_losses)


def _left_out(model: Any, y: np.ndarray) -> Answers:
    """Answers that a fit gives of its own rows, each left out."""
    answers = left_out_answers(model)
    assert answers is not None
    if answers.log_proba is None:
        return Answers(answers.predictions, answers.known)
    return Answers(
        answers.predictions, answers.known, _sample_log_losses(model, answers.log_proba, y)
    )


def _sample_log_losses(model: Any, logs: np.ndarray, y: np.ndarray) -> np.ndarray:
    losses: np.ndarray = -logs[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return losses


def splits_of(
    cv: Any, fitted: Any, y: np.ndarray, kept: np.ndarray, groups: np.ndarray, random_state: int
) -> Splits | None:
    """Folds of the rows `kept`, or None where the fits leave samples out themselves.

    `y` has the targets of all rows, which are what `cv` splits; `groups` are those of the rows
    kept, which folds by number keep together.
    """
    if cv is None and leaves_out_honestly(fitted):
        return None
    classes = y[kept] if is_classifier(fitted) else None
    splits, tested = [], np.zeros(len(kept), int)
    if cv is None or (isinstance(cv, int) and not isinstance(cv, bool)):
        parts = _folds(DEFAULT_FOLDS if cv is None else cv, classes, groups, random_state)
    else:
        splitter = check_cv(cv, y, classifier=classes is not None)
        parts = [
            tuple(rows_of_part(part, len(y), kept, k) for part in split)
            for k, split in enumerate(splitter.split(np.zeros((len(y), 1)), y))
        ]
    for k, (train, test) in enumerate(parts):
        tested[test] += 1
        refuse_split(k, train, test, classes)
        splits.append((train, test))
    if tested.max(initial=0) > 1:
        row = int(kept[tested.argmax()])
        raise ValueError(
            f"cv tests row {row} in {tested.max()} splits: every row may be tested once, so that "
            "its losses can be compared. Use folds, such as cv=5, KFold or GroupKFold."
        )
    return splits


def _folds(n_folds: int, classes: Any, groups: np.ndarray, random_state: int) -> list[Any]:
    """Training and test rows of shuffled folds, with classes in equal parts."""
    if n_folds < 2:
        raise ValueError(f"cv={n_folds}: folds are at least 2.")
    every = np.arange(len(groups))
    labels = np.zeros(len(groups), int)
    if classes is not None:
        labels = np.unique(classes, return_inverse=True)[1]
    folds = stratified_folds(labels, groups, n_folds, seed=random_state)
    if len(folds) < 2:
        raise ValueError(
            f"cv={n_folds}: the samples cannot be divided into folds, because no class has two "
            "samples that are not repeats of each other."
        )
    return [(np.delete(every, test), test) for test in folds]


def refuse_split(split: int, train: np.ndarray, test: np.ndarray, classes: Any = None) -> None:
    """Raise if a part is empty, both share rows, or one of the `classes` of all rows is lost."""
    if not len(train):
        raise ValueError(f"Split {split} has no training samples.")
    if not len(test):
        raise ValueError(f"Split {split} has no test samples.")
    if len(np.intersect1d(train, test)):
        raise ValueError(f"Split {split} tests samples that it learns from.")
    if classes is None:
        return
    unseen = np.setdiff1d(classes, classes[train])
    if len(unseen):
        raise ValueError(
            f"Split {split} leaves no training samples of {unseen.tolist()}: use fewer folds, or "
            "leave these samples out."
        )
