"""Held-out losses of models with any subset of the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from .. import estimators
from ..estimators.base import KernelEstimator
from ..estimators.cox import SurvivalEstimator
from ..estimators.gated import GateParameters
from ..estimators.inputs import groups_of
from ..estimators.prediction import KernelClassifier, chosen_classes
from ..estimators.weights import EVIDENCE
from ..kernels import KernelStack, KernelUnion, Views
from ..kernels.auto import kernels_for
from ..kernels.composition import views_of
from ..kernels.tables import Table
from ..solvers.base import DEFAULT_SOLVER, as_solver
from ..survival import survival_array
from ..utils.folds import positions_among, splits_of_rows, stratified_folds, warn_of_untested
from ..utils.sklearn import groups_for, safe_indexing
from .scoring import Answers, Judged, Scoring, strata_of

# -- Estimators on precomputed kernels, with or without a search ----------------------------------


# Exponents by which regularisation parameters compensate a factor n^(−1/p) of all kernels: the
# unscaled kernels give the same machines with reg · n^(1/p), or with C · n^(−1/p).
_SCALED = {"reg": 1.0, "C": -1.0}
# Attributes with the chosen value of parameters whose own name is that of the list of candidates.
_CHOSEN = {"regions": "regions_"}


def checked_learner(estimator: KernelEstimator, name: str = "view_importance") -> Any:
    """Return a copy of the estimator for precomputed kernels; raise if it is not supported.

    `name` is the function that takes the estimator.
    """
    supported = (
        isinstance(estimator, KernelEstimator)
        # A gate weights kernels differently at every sample.
        and not isinstance(estimator, GateParameters)
        and (
            is_classifier(estimator)
            or is_regressor(estimator)
            or isinstance(estimator, SurvivalEstimator)
        )
        and {"p", "ps"} & estimator.get_params(deep=False).keys()
    )
    if not supported:
        got = f"the class {estimator.__name__}" if isinstance(estimator, type) else estimator
        raise ValueError(
            f"{name} takes classifiers, regressors and survival models of this package "
            f"that learn one weight per kernel at a norm p, such as MKFDA() or MKSVR(); got {got}."
        )
    if getattr(estimator, "kernel_sets", None) is not None:
        raise ValueError(
            "Importance is measured with the kernels of one set, and kernel_sets has several to "
            "choose from: pass an estimator with the kernels of one of them, such as the chosen "
            "one, and kernel_sets=None."
        )
    return clone(estimator).set_params(kernels="precomputed", verbose=False)


def searches(learner: KernelEstimator) -> bool:
    """Return whether the estimator chooses its parameters by cross-validation."""
    return "ps" in learner.get_params(deep=False)


def at_chosen_norm(learner: KernelEstimator, fitted: KernelEstimator) -> Any:
    """Return the estimator with the p chosen by a fit; a search chooses the other parameters."""
    if not searches(learner):
        return learner
    return clone(learner).set_params(ps=[EVIDENCE if np.isnan(fitted.p_) else fitted.p_])


def _kind_without_search(learner: KernelEstimator) -> type:
    """Return the class of the estimator, without "CV"."""
    if not searches(learner):
        return type(learner)
    kind: type = getattr(estimators, type(learner).__name__.removesuffix("CV"))
    return kind


def without_search(learner: KernelEstimator, fitted: KernelEstimator) -> Any:
    """Return the estimator without its search, at the chosen parameters."""
    if not searches(learner):
        return learner
    plain = _kind_without_search(learner)()
    params, names = learner.get_params(deep=False), plain.get_params(deep=False).keys()
    chosen = {
        name: getattr(fitted, f"{name}_")
        for name in names
        if name not in params and hasattr(fitted, f"{name}_")
    }
    if np.ndim(fitted.p_) == 0 and np.isnan(fitted.p_):
        chosen |= {"p": EVIDENCE, "solver": DEFAULT_SOLVER}
    params = {name: value for name, value in params.items() if name not in _CHOSEN}
    chosen |= {name: getattr(fitted, _CHOSEN[name]) for name in names & _CHOSEN.keys()}
    if any(np.ndim(value) for value in chosen.values()):
        raise ValueError(
            f"{type(learner).__name__} chose parameters for each of several targets: compute the "
            "importance for one target at a time, or let the targets share their weights."
        )
    return plain.set_params(**{name: params[name] for name in names if name in params}, **chosen)


def _has_probabilities(kind: type) -> bool:
    return issubclass(kind, KernelClassifier) and kind._probabilities == "scores"


def sensitive_scoring(estimator: Any) -> str | None:
    """Return "neg_log_loss" for classifiers with probabilities, else None, the default."""
    if not isinstance(estimator, KernelClassifier):
        return None
    return "neg_log_loss" if _has_probabilities(_kind_without_search(estimator)) else None


def refuse_without_probabilities(learner: KernelEstimator, scoring: Scoring) -> None:
    """Raise if the score needs probabilities that the estimator does not have."""
    kind = _kind_without_search(learner)
    if scoring.needs_probabilities and not _has_probabilities(kind):
        raise ValueError(
            f"scoring={scoring.name!r} needs probabilities, which {kind.__name__} does not have: "
            'use scoring="accuracy", or MKFDA.'
        )


def of_plain_sum(learner: KernelEstimator, n_kernels: int) -> Any:
    """Return the estimator at p = ∞, with weights 1.

    None if p is already infinite, or "evidence", so that λ of the plain sum is not known.

    A search chooses its regularisation again. Else the plain sum has the same norm as learnt
    weights, ``n^(−1/p)`` for each of n kernels, which is a factor of the regularisation.
    """
    if searches(learner):
        return clone(learner).set_params(ps=[np.inf])
    params = learner.get_params(deep=False)
    if params["p"] == EVIDENCE or np.isinf(params["p"]):
        return None
    scaled = {
        name: params[name] * n_kernels ** (power / params["p"])
        for name, power in _SCALED.items()
        if not isinstance(params.get(name, ""), str)
    }
    if "solver" in params:
        scaled["solver"] = DEFAULT_SOLVER
    return clone(learner).set_params(p=np.inf, **scaled)


def leaves_out_honestly(fitted: KernelEstimator) -> bool:
    """Return whether a fit has unbiased held-out predictions of its training samples.

    A search has those of its folds. In closed form they are biased if the sample has been used in
    another way: for the axes of denoising, for λ learnt with the weights, for fixed weights, or
    for kernels that learn from targets.
    """
    if hasattr(fitted, "test_fold_") and fitted.n_splits_ > 1:
        return True
    left_out = hasattr(fitted, "left_out_log_proba_") or hasattr(fitted, "left_out_predictions_")
    return (
        left_out
        and getattr(fitted, "denoise", None) is None
        and getattr(fitted, "reg", None) != "joint"
        and getattr(fitted, "p", None) != EVIDENCE
        and not learns_kernels(getattr(fitted, "union_", None))
        and not as_solver(getattr(fitted, "solver", DEFAULT_SOLVER)).by_columns
    )


def learns_kernels(union: Any) -> bool:
    """Return whether some kernels of a fitted union, or None, learn from targets."""
    return union is not None and len(union.learning_from_targets()) > 0


@dataclass(frozen=True)
class LeftOutAnswers:
    """Held-out predictions of the training rows of a fit.

    Attributes
    ----------
    predictions : ndarray of shape (n_rows,) or (n_rows, n_targets)
    log_proba : ndarray of shape (n_rows, n_classes) or None
    known : ndarray of bool, (n_rows,)
        Rows that were held out; the predictions of other rows are undefined.
    rows : ndarray of int or None
        Indices among the training rows; None for all of them.
    """

    predictions: np.ndarray
    log_proba: np.ndarray | None
    known: np.ndarray
    rows: np.ndarray | None


def left_out_answers(fitted: KernelEstimator) -> LeftOutAnswers | None:
    """Return unbiased held-out predictions of the training rows; None if there are none."""
    if not leaves_out_honestly(fitted):
        return None
    rows = getattr(fitted, "left_out_rows_", None)
    if hasattr(fitted, "left_out_predictions_"):
        values = fitted.left_out_predictions_
        return LeftOutAnswers(values, None, _finite_rows(values), rows)
    if hasattr(fitted, "n_labels_"):
        # Logarithms of the probabilities of labels, or decision values.
        answers, least = getattr(fitted, "left_out_log_proba_", None), np.log(0.5)
        if answers is None:
            answers, least = fitted.left_out_decisions_, 0.0
        with np.errstate(invalid="ignore"):
            chosen = (answers > least).astype(int)
        return LeftOutAnswers(chosen, None, _finite_rows(answers), rows)
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


# -- Kernels of views -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ViewKernels:
    """Kernels of a view, as indices in a stack.

    Attributes
    ----------
    name : str
    kernels : ndarray of int
        Kernels that use the view, and are removed when it is left out.
    exclusive : ndarray of int
        Kernels that use no other view, and remain when it is used alone.
    """

    name: str
    kernels: np.ndarray
    exclusive: np.ndarray


def kernels_of_views(
    stack: KernelStack, union: KernelUnion | None, X: Table, given: Any
) -> list[ViewKernels]:
    """Return the kernels of the `given` views, of the views of X, or each kernel as a view.

    `union` has the kernels of the stack, or is None if they are precomputed. A precomputed stack
    may have views of its own.
    """
    names = stack.names
    if given is not None:
        views = _of_names(given, names)
    elif isinstance(X, Views) and union is not None:
        views = _of_tables(union, X)
    elif union is None and stack.views is not None:
        pairs = list(zip(stack.views, names, strict=True))
        by_view = {view: [name for other, name in pairs if other == view] for view in stack.views}
        views = _of_names(by_view, names)
    else:
        views = [ViewKernels(name, np.array([j]), np.array([j])) for j, name in enumerate(names)]
    for view in views:
        if len(view.kernels) == len(names):
            reason = "it is the only one" if len(views) == 1 else "all kernels belong to it"
            raise ValueError(
                f"View {view.name!r} cannot be left out: {reason}. Importance is a comparison of "
                "at least two views."
            )
    return views


def _of_tables(union: KernelUnion, X: Views) -> list[ViewKernels]:
    used = [views_of(kernel) for kernel in dict(union.kernels).values()]
    views = []
    for name in X:
        kernels = [j for j, names in enumerate(used) if name in names]
        if not kernels:
            raise ValueError(
                f"View {name!r} has no kernel: add one, such as RBF().of({name!r}), or leave the "
                "view out of X."
            )
        exclusive = [j for j in kernels if used[j] == {name}]
        views.append(ViewKernels(name, np.array(kernels), np.array(exclusive, dtype=int)))
    return views


def _of_names(given: object, names: list[str]) -> list[ViewKernels]:
    if not isinstance(given, Mapping) or not given:
        raise ValueError(
            "views must be a dict from names of views to lists of kernel names, such as "
            f'{{"a view": [{names[0]!r}]}}; got {given!r}.'
        )
    members = {}
    for view, entry in given.items():
        listed = [entry] if isinstance(entry, str) else list(entry)
        if not listed:
            raise ValueError(f"View {view!r} has no kernels.")
        for name in listed:
            if name not in names:
                raise ValueError(
                    f"View {view!r} has a kernel {name!r} that does not exist; the kernels are "
                    f"{', '.join(map(repr, names))}."
                )
        members[str(view)] = {names.index(name) for name in listed}
    views = []
    for view, kernels in members.items():
        others = set().union(*(listed for name, listed in members.items() if name != view))
        views.append(ViewKernels(view, _sorted(kernels), _sorted(kernels - others)))
    return views


def _sorted(kernels: set[int]) -> np.ndarray:
    return np.array(sorted(kernels), dtype=int)


#: Training and test rows of each fold.
Splits = list[tuple[np.ndarray, np.ndarray]]

# Number of folds with cv=None if samples cannot be left out in closed form, as in scikit-learn.
DEFAULT_FOLDS = 5


@dataclass(frozen=True)
class LearntKernels:
    """Rows of X, and named kernels of which some learn from targets."""

    X: Any
    pairs: list[tuple[str, Any]]

    @classmethod
    def of(cls, X: Any, kernels: Any, *, relevance: bool) -> LearntKernels:
        """Return the kernels that an estimator builds of its parameter `kernels`."""
        return cls(X, list(dict(kernels_for(X, kernels, relevance=relevance).kernels).items()))

    def select(self, kernels: Any) -> LearntKernels:
        """Return some of the kernels."""
        return replace(
            self, pairs=[self.pairs[j] for j in np.arange(len(self.pairs))[kernels].ravel()]
        )

    def take(self, rows: np.ndarray) -> LearntKernels:
        """Return some of the rows."""
        return replace(self, X=safe_indexing(self.X, rows))

    def estimator(self, learner: KernelEstimator) -> Any:
        """Return the estimator with these kernels instead of precomputed ones."""
        return clone(learner).set_params(kernels=KernelUnion(self.pairs))


@dataclass(frozen=True)
class Study:
    """Kernels, targets and splits with which models are compared.

    Attributes
    ----------
    stack : KernelStack
        All kernels of all rows, with the groups of rows that are left out together.
    y : ndarray
    counts : ndarray of shape (n_rows,) or None
        Number of samples that each row represents; None for one.
    scoring : Scoring
    splits : list of pairs of ndarray, or None
        Folds. If None, the fits have held-out predictions: in closed form or, of a search, in its
        `n_folds` folds.
    n_folds : int
    given : ndarray of shape (n_rows,) or None
        Labels of the groups, if some were given.
    table : LearntKernels or None
        The rows and their kernels, if some of these learn from targets: then every model learns
        them anew, and the stack is not used to fit models.
    """

    stack: KernelStack
    y: np.ndarray
    counts: np.ndarray | None
    scoring: Scoring
    splits: Splits | None
    n_folds: int = 1
    given: np.ndarray | None = None
    table: LearntKernels | None = None

    @property
    def weights(self) -> np.ndarray:
        """`counts`, or ones."""
        return np.ones(len(self.y)) if self.counts is None else self.counts

    @property
    def groups(self) -> np.ndarray:
        """Groups of rows that are left out together."""
        return groups_of(self.stack)

    @property
    def events(self) -> np.ndarray | None:
        """Rows that limit the number of pairs: those with an event, or of the rarer class.

        None if the score is no share of pairs.
        """
        if not self.scoring.of_pairs:
            return None
        if self.y.dtype.names:
            return np.asarray(self.y["event"])
        labels = np.unique(self.y, return_inverse=True)[1]
        return np.asarray(labels == np.bincount(labels, self.weights).argmin())

    @property
    def train_share(self) -> float:
        """Fraction of the samples that each model is trained on."""
        if self.splits is None:
            return 1.0 - 1.0 / (self.n_folds if self.n_folds > 1 else len(np.unique(self.groups)))
        weights = self.weights
        return float(np.mean([weights[train].sum() for train, _ in self.splits]) / weights.sum())

    def fit(self, learner: KernelEstimator, kernels: Any, counts: np.ndarray | None = None) -> Any:
        """Fit a model with some of the kernels, with `counts` in place of those of the study."""
        counts = self.counts if counts is None else counts
        if self.table is not None:
            model = self.table.select(kernels).estimator(learner)
            return fitted_to(
                model, self.table.X, self.y, counts, **groups_for(learner, self.given)
            )
        # Others take the groups of the stack.
        groups = groups_for(learner, self.given) if searches(learner) else {}
        return fitted_to(clone(learner), self.stack.select(kernels), self.y, counts, **groups)

    def fit_rows(self, learner: KernelEstimator, train: np.ndarray) -> Any:
        """Fit a model to some of the rows, with all kernels."""
        weights = None if self.counts is None else self.counts[train]
        if self.table is not None:
            model, groups = self.table.estimator(learner), groups_for(learner, self.given)
            groups = {name: labels[train] for name, labels in groups.items()}
            X = safe_indexing(self.table.X, train)
            return fitted_to(model, X, self.y[train], weights, **groups)
        gram = self.stack[np.ix_(train, train)]
        return fitted_to(clone(learner), gram, self.y[train], weights)

    def held_out(self, test: np.ndarray, train: np.ndarray) -> Any:
        """Return held-out rows as a model that was fitted to the rows `train` takes them."""
        if self.table is not None:
            return safe_indexing(self.table.X, test)
        return self.stack[np.ix_(test, train)]

    def select(self, kernels: Any) -> Study:
        """Return the study with some of the kernels."""
        table = None if self.table is None else self.table.select(kernels)
        return replace(self, stack=self.stack.select(kernels), table=table)

    def judge(
        self, learner: KernelEstimator, kernels: Any, fitted: KernelEstimator | None = None
    ) -> Judged:
        """Return held-out predictions and losses of each row, of models with some of the kernels.

        `fitted` is the model of all rows, if available. A search uses all rows; folds are then
        held out with the chosen parameters.
        """
        rows = self._rows_with(kernels)
        if len(rows) == len(self.y):
            answers = self._answers(learner, kernels, fitted)
        else:
            answers = self._of(rows)._answers(learner, kernels, None).spread(rows, len(self.y))
        return Judged(answers, self.scoring.of(self.y, answers, self.weights))

    def paired(self, first: Judged, second: Judged) -> tuple[np.ndarray, np.ndarray]:
        """Return losses of two models that can be compared row by row."""
        if not self.scoring.of_pairs:
            return first.losses, second.losses
        # Pairs of samples that both models judge.
        both = first.answers.judged & second.answers.judged
        losses = [
            self.scoring.of(self.y, replace(model.answers, judged=both), self.weights)
            for model in (first, second)
        ]
        return losses[0], losses[1]

    def _rows_with(self, kernels: Any) -> np.ndarray:
        """Return rows that have at least one of the kernels."""
        diagonals = np.array([np.diagonal(matrix) for matrix in self.stack.data])[kernels]
        return np.flatnonzero(~np.isnan(diagonals).all(axis=0))

    def _of(self, rows: np.ndarray) -> Study:
        """Return the study of some rows, without folds that test none of them."""
        number = np.full(len(self.y), -1)
        number[rows] = np.arange(len(rows))
        splits = self.splits
        if splits is not None:
            parts = [(number[train], number[test]) for train, test in splits]
            splits = [(train[train >= 0], test[test >= 0]) for train, test in parts]
            splits = [(train, test) for train, test in splits if len(test)]
        counts, given = (
            None if values is None else values[rows] for values in (self.counts, self.given)
        )
        stack, y = self.stack[np.ix_(rows, rows)], self.y[rows]
        table = None if self.table is None else self.table.take(rows)
        return replace(
            self, stack=stack, y=y, counts=counts, given=given, splits=splits, table=table
        )

    def _answers(
        self, learner: KernelEstimator, kernels: Any, fitted: KernelEstimator | None
    ) -> Answers:
        if self.splits is None:
            model = self.fit(learner, kernels) if fitted is None else fitted
            return _left_out(model, self.y)
        if searches(learner):
            fitted = self.fit(learner, kernels) if fitted is None else fitted
            learner = without_search(learner, fitted)
        return self.select(kernels)._held_out(learner, self.splits)

    def _held_out(self, learner: KernelEstimator, splits: Splits) -> Answers:
        """Return held-out predictions of the folds."""
        y = self.y
        predictions, judged = np.zeros(y.shape), np.zeros(len(y), bool)
        if is_classifier(learner):
            predictions = np.zeros_like(y)
        logs = ClassLogs(y) if self.scoring.needs_probabilities else None
        for train, test in splits:
            model, X = self.fit_rows(learner, train), self.held_out(test, train)
            predictions[test], judged[test] = model.predict(X), True
            if logs is not None:
                logs.add(model, model.predict_log_proba(X), test)
        return Answers(predictions, judged, *(() if logs is None else logs.values))


def _left_out(model: KernelEstimator, y: np.ndarray) -> Answers:
    """Return the held-out predictions that a fit has of its training rows."""
    answers = left_out_answers(model)
    assert answers is not None
    if answers.log_proba is None:
        return Answers(answers.predictions, answers.known)
    logs = ClassLogs(y)
    logs.add(model, answers.log_proba, np.arange(len(y)))
    return Answers(answers.predictions, answers.known, *logs.values)


class ClassLogs:
    """Log losses of samples and, of two classes, their log-odds, NaN where nothing was added."""

    def __init__(self, y: np.ndarray) -> None:
        self.y = y
        self.log_losses, self.log_odds = np.full((2, len(y)), np.nan)

    def add(self, model: KernelEstimator, logs: np.ndarray, rows: np.ndarray) -> None:
        """Enter the log-probabilities of some rows by a model."""
        true = np.searchsorted(model.classes_, self.y[rows])
        self.log_losses[rows] = -logs[np.arange(len(rows)), true]
        if logs.shape[1] == 2:
            self.log_odds[rows] = logs[:, 1] - logs[:, 0]

    @property
    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Log losses and log-odds."""
        return self.log_losses, self.log_odds


def fitted_to(
    learner: KernelEstimator, X: Any, y: np.ndarray, counts: np.ndarray | None, **groups: Any
) -> Any:
    """Fit an estimator; entries and strata of survival times are fields of y."""
    if y.dtype.names:
        for field, name in (("entry", "entry"), ("stratum", "strata")):
            if field in y.dtype.names:
                groups[name] = y[field]
        y = survival_array(y[["event", "time"]])
    return learner.fit(X, y, counts, **groups)  # type: ignore[attr-defined]


def splits_of(
    cv: Any,
    fitted: KernelEstimator,
    y: np.ndarray,
    kept: np.ndarray,
    groups: np.ndarray,
    random_state: int,
    given: np.ndarray | None = None,
) -> Splits | None:
    """Return folds of the rows `kept`, or None if the fits have held-out predictions.

    `y` has the targets of all rows, which `cv` splits, and `given` the labels of their groups, if
    some were given. `groups` are those of the rows kept, which stay together if `cv` is a number.
    """
    if cv is None and leaves_out_honestly(fitted):
        return None
    strata = strata_of(fitted, y[kept])
    splits, tested = [], np.zeros(len(kept), int)
    if cv is None or (isinstance(cv, int) and not isinstance(cv, bool)):
        parts = _folds(DEFAULT_FOLDS if cv is None else cv, strata, groups, random_state)
        if is_classifier(fitted) and given is None:
            warn_of_untested(*np.unique(y[kept], return_inverse=True)[::-1], [t for _, t in parts])
    else:
        splits_of_all = splits_of_rows(cv, y, given, classifier=is_classifier(fitted))
        parts = [
            (positions_among(kept, train), positions_among(kept, test))
            for train, test in splits_of_all
        ]
    for k, (train, test) in enumerate(parts):
        tested[test] += 1
        refuse_split(k, train, test, strata if is_classifier(fitted) else None)
        splits.append((train, test))
    if tested.max(initial=0) > 1:
        row = int(kept[tested.argmax()])
        raise ValueError(
            f"cv tests row {row} in {tested.max()} splits, but every row may be tested only once. "
            "Use folds, such as cv=5, KFold or GroupKFold."
        )
    return splits


def _folds(
    n_folds: int, strata: np.ndarray | None, groups: np.ndarray, random_state: int
) -> list[Any]:
    """Return training and test rows of shuffled, stratified folds."""
    if n_folds < 2:
        raise ValueError(f"cv={n_folds}: there must be at least 2 folds.")
    rows = np.arange(len(groups))
    labels = np.zeros(len(groups), int)
    if strata is not None:
        labels = np.unique(strata, return_inverse=True)[1]
    folds = stratified_folds(labels, groups, n_folds, seed=random_state)
    if len(folds) < 2:
        raise ValueError(
            f"cv={n_folds}: the samples cannot be divided into folds, because no class has two "
            "samples that are neither repeats of each other nor of one group."
        )
    return [(np.delete(rows, test), test) for test in folds]


def refuse_split(
    split: int, train: np.ndarray, test: np.ndarray, classes: np.ndarray | None = None
) -> None:
    """Raise if a part is empty, the parts overlap, or a class has no training samples."""
    if not len(train):
        raise ValueError(f"Split {split} has no training samples.")
    if not len(test):
        raise ValueError(f"Split {split} has no test samples.")
    if len(np.intersect1d(train, test)):
        raise ValueError(f"Split {split} has samples in both its training and its test part.")
    if classes is None:
        return
    unseen = np.setdiff1d(classes, classes[train])
    if len(unseen):
        raise ValueError(
            f"Split {split} leaves no training samples of {unseen.tolist()}: use fewer folds, or "
            "leave these samples out."
        )
