"""One kernel made of several, for a machine that learns from one.

A *merge* makes one kernel of the kernels of a stack, entry by entry. The machine is one of the
estimators of this package, with ``kernels="precomputed"``. It is given a matrix with a row and a
column for every row of X, in which samples of no weight have zeros: it leaves these out itself, so
that row numbers of splits, support vectors and error messages are those of X.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..estimators import MKSVC
from ..estimators.base import POSITIVE, FitTask, KernelEstimator, estimator
from ..estimators.inputs import (
    Source,
    TrainingRows,
    block_while_fitting,
    by_blocks,
    centred_rows,
    labelled_rows,
    matched_by_label,
    ridge_rows,
    rows_of_any_targets,
    scored,
    targeted_rows,
)
from ..estimators.kernel_data import (
    KernelPredictor,
    TrainingKernels,
    for_columns,
    transformed_blocks,
)
from ..estimators.prediction import is_multilabel, takes_tables
from ..estimators.search import is_validation_set
from ..estimators.svm import MachineKernels, SupportVectors
from ..kernels import KernelStack
from ..kernels.transforms import Chain
from ..utils.sklearn import num_samples
from ..utils.storable import storable

Numbers = tuple[np.ndarray, np.ndarray]


class Merge(Protocol):
    """How one kernel is made of several; kernels of weight zero have no part in it."""

    @property
    def name(self) -> str:
        """What the one kernel is called."""

    @property
    def weights(self) -> np.ndarray: ...

    def select(self, kernels: np.ndarray) -> Merge:
        """The same of some of the kernels, which are all that have weights."""

    def matrix(self, stack: KernelStack, numbers: Numbers) -> np.ndarray:
        """The one kernel of a stack; `numbers` of its rows and columns are for messages."""

    def diagonal(self, diagonals: np.ndarray) -> np.ndarray:
        """Self-similarities of samples, from those of every kernel, (n_kernels, n_samples)."""


@storable
@dataclass(frozen=True)
class PowerOfSum:
    """``(Σ_j weights[j] K_j)^degree``, entry by entry; a weighted sum by default."""

    name: str
    weights: np.ndarray
    degree: int = 1

    def select(self, kernels: np.ndarray) -> Self:
        return replace(self, weights=self.weights[kernels])

    def matrix(self, stack: KernelStack, numbers: Numbers) -> np.ndarray:
        total = stack.combine(self.weights)
        return total if self.degree == 1 else total**self.degree

    def diagonal(self, diagonals: np.ndarray) -> np.ndarray:
        total: np.ndarray = (self.weights @ diagonals) ** self.degree
        return total


@dataclass(frozen=True)
class SourceKernels:
    """Prepared kernels of the training rows of a `rule`, which makes one of them."""

    rule: Any
    rows: TrainingRows
    kernels: TrainingKernels
    transform: Chain
    stack: KernelStack

    @classmethod
    def of(
        cls, rule: Any, rows: TrainingRows, normalize: str | None, *, shift_invariant: bool = True
    ) -> Self:
        """Compute or check the kernels of `rows`, complete and normalise them, not centred."""
        kernels = TrainingKernels.of(rows, rows.counts, shift_invariant=shift_invariant)
        transform = kernels.preparation(normalize, center=False)
        return cls(rule, rows, kernels, transform, kernels.prepared(transform, rows.counts))

    def merged(self, merge: Merge) -> KernelStack:
        """The one kernel of the training rows."""
        numbers = self.rows.numbers
        matrix = merge.matrix(self.stack, (numbers, numbers))
        # It is PSD, or so once centred, where all kernels are; a power of centred ones is not.
        guarantees = replace(self.stack.guarantees, checked=True, centered=False)
        stack = KernelStack(matrix[None], [merge.name], gram=True)
        return stack._changed(guarantees=guarantees, groups=self.rows.groups)

    def learn(
        self,
        machine: Any,
        merge: Merge,
        y: Any,
        sample_weight: Any,
        task: FitTask,
        check: Callable[[KernelStack], KernelStack] = lambda one: one,
    ) -> MergedKernel:
        """Fit the machine to the one kernel, `check` having had a look at it, as part of `task`.

        Returns the kernel of new samples.
        """
        width = len(self.rows) if sample_weight is None else len(np.asarray(sample_weight))
        numbers = self.rows.numbers
        one = check(self.merged(merge))
        if width > len(numbers):
            matrix = np.zeros((width, width))
            matrix[np.ix_(numbers, numbers)] = one.kernel(0)
            # Rows of no weight are in no group of others.
            groups = len(numbers) + np.arange(width)
            groups[numbers] = self.rows.groups
            wide = KernelStack(matrix[None], one.names, gram=True)
            one = wide._changed(guarantees=one.guarantees, groups=groups)
        given: Any = getattr(machine, "cv", None)
        if is_validation_set(given) and len(given) == 2:
            machine.set_params(cv=self._validation_set(merge, given, width))
        part = task.subtask(merge.name)
        with warnings.catch_warnings(), part.passed_on_to(machine):
            # That kernels are constant has been said, by their own names.
            warnings.filterwarnings("ignore", "Nothing can be learnt from kernels", UserWarning)
            machine.fit(one, y, sample_weight)
        part.end()
        if given is not None:
            # Not the kernels of a validation set, which would be kept along with the machine.
            machine.set_params(cv=given)
        return MergedKernel.of(self, merge, _columns_of(machine, numbers), width)

    def _validation_set(self, merge: Merge, given: tuple[Any, Any], width: int) -> tuple[Any, Any]:
        """A pair (X_val, y_val) with the one kernel in the place of X_val."""
        X, y, _ = matched_by_label(self.rule, *given)
        block = block_while_fitting(self.kernels.source, self.rule, self.rows.data, X)
        block = self.transform.transform(block)
        return _wide(merge, block, np.arange(len(block)), self.rows.numbers, width), y


@storable
@dataclass(frozen=True)
class MergedKernel:
    """The one kernel between new samples and the training samples that a machine looks at.

    `source` has these training samples, whose rows in X are `columns`. `transform` prepares its
    kernels at the positions `inputs`.
    """

    source: Source
    transform: Chain
    inputs: np.ndarray
    merge: Merge
    columns: np.ndarray
    width: int

    @classmethod
    def of(cls, kernels: SourceKernels, merge: Merge, columns: np.ndarray, width: int) -> Self:
        """Leave out kernels without weight, and training samples that are not in `columns`."""
        used = np.flatnonzero(merge.weights)
        source, transform = kernels.kernels.source, kernels.transform
        inputs, transform = transform.sources(used), transform.select(used)
        numbers = kernels.rows.numbers
        if len(columns) < len(numbers):
            positions = np.searchsorted(numbers, columns)
            source, transform = for_columns(source, transform, positions)
        return cls(source, transform, inputs, merge.select(used), columns, width)

    def answers(self, rule: Any, X: Any, method: str) -> np.ndarray:
        """What a method of the machine of a fitted rule says of new X, in blocks of rows."""
        data = self.source.read(rule, X)
        ask, n_kernels = getattr(rule.estimator_, method), len(self.inputs)
        blocks = transformed_blocks(self.source, self.transform, self.inputs, data, n_kernels)
        numbers = np.arange(int(num_samples(data)))
        return np.concatenate(
            [
                ask(_wide(self.merge, block, numbers[rows], self.columns, self.width))
                for rows, block in blocks
            ]
        )


def _columns_of(machine: Any, numbers: np.ndarray) -> np.ndarray:
    """Those rows of X, of the ones that count, which a fitted machine compares new rows with."""
    predictor = machine._predictor
    if not isinstance(predictor, KernelPredictor) or predictor.source.columns is None:  # type: ignore[union-attr]
        return numbers
    return predictor.source.columns  # type: ignore[union-attr]


def _wide(
    merge: Merge, block: KernelStack, rows: np.ndarray, columns: np.ndarray, width: int
) -> KernelStack:
    """The one kernel of a block, with zeros in the columns that the machine does not look at."""
    matrix = merge.matrix(block, (rows, columns))
    if len(columns) < width:
        narrow, matrix = matrix, np.zeros((len(rows), width))
        matrix[:, columns] = narrow
    diagonal = None if block.row_diag is None else merge.diagonal(block.row_diag)[None]
    return KernelStack(matrix[None], [merge.name], row_diag=diagonal)


# -- Sums of machines or columns of several kernels, each with coefficients of its own ------------


class MixtureAttributes:
    """Fitted attributes of such sums, besides those of support vectors.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_kernels, n_outputs, n_support)
        ``Σ_j weights_[j] K_j(X, support) @ dual_coef_[j].T + intercept_`` is the output, with K_j
        normalised; zero for kernels without weight.
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``rel_gap`` and ``converged``, computed from the values that
        the linear program is about; ``dual_point`` is the proof.
    n_iter_ : int
        Length of the history.
    history_ : dict of list
        ``objective``, ``rel_gap`` and ``n_inner_solves`` at each iteration.
    """


@dataclass(frozen=True)
class KernelMixture:
    """``Σ_j weights[j] K_j @ coefficients[j] + intercept``.

    `weights` are (n_kernels,) or (n_outputs, n_kernels); `coefficients` are those of all training
    samples, (n_kernels, m, n_outputs).
    """

    weights: np.ndarray
    coefficients: np.ndarray
    intercept: np.ndarray

    def attributes(self, rows: TrainingRows, kernels: MachineKernels) -> dict[str, Any]:
        """Fitted attributes."""
        n_kernels, n_samples, n_outputs = self.coefficients.shape
        weighted = np.atleast_2d(self.weights).T[:, None] > 0.0
        used = np.where(weighted, self.coefficients, 0.0)
        vectors = SupportVectors.of(used.transpose(1, 0, 2).reshape(n_samples, -1))
        kept = vectors.coefficients.reshape(-1, n_kernels, n_outputs).transpose(1, 0, 2)
        attributes = vectors.attributes(rows, kernels.kernels.source.keep(vectors.kept))
        shape = (n_kernels, n_outputs, len(vectors.support))
        return {
            **rows.attributes,
            **attributes,
            "kernel_names_": kernels.stack.names,
            "weights_": self.weights,
            "dual_coef_": attributes["dual_coef_"].reshape(shape),
            "intercept_": self.intercept,
            "_predictor": kernels.predictor(self.weights, kept, vectors.kept),
        }


# -- Estimators that make one kernel of several: their machine, and what it answers ---------------


# Attributes of the machine that every estimator has.
_OF_THE_MACHINE = ("classes_", "certificate_", "n_iter_", "n_inner_solves_", "history_")


def _offers(method: str) -> Callable[[Any], bool]:
    """Whether the machine of a rule has a method."""

    def check(rule: Any) -> bool:
        has_it = hasattr(vars(rule).get("estimator_", rule._given), method)
        return has_it and ("proba" not in method or takes_tables(rule))

    return check


@estimator()
class OneKernelMachine:
    """Parameters and answers of estimators whose machine learns from one kernel.

    Parameters
    ----------
    estimator : estimator of this package, default=None
        The machine: a classifier or a regressor, with or without cross-validation. A copy of it
        is fitted to the one kernel, on which its p has no effect; its own `kernels` must be None,
        and its `normalize` and `missing` are not looked at. A validation set in its `cv` is given
        as for the whole: a table, views or kernels like X. None takes an :class:`MKSVC`.
    tol : float, optional
        Accuracy of the machine, instead of that of `estimator`.
    verbose : bool, default=False
        Print a line per iteration of the machine. Progress bars:
        ``set_callbacks(ProgressBar())``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted machine, ``kernels="precomputed"``. Row numbers, such as those of its support
        vectors, are those of X.
    classes_ : ndarray of shape (n_classes,)
        Of classifiers.
    certificate_, n_iter_, n_inner_solves_, history_
        Of the machine.
    """

    estimator: Any = None
    tol: Any = None
    verbose: bool = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [KernelEstimator, None],
        "tol": [*POSITIVE, None],
    }

    #: The machine that is taken by default.
    _default: ClassVar[type] = MKSVC

    estimator_: ClassVar[Any]
    _predictor: ClassVar[MergedKernel]

    @property
    def _given(self) -> Any:
        """The machine as it was given, not to be changed."""
        return self._default() if self.estimator is None else self.estimator

    def _new_machine(self, normalize: str | None = None, **others: Any) -> Any:
        """A copy of the machine, to be fitted to one kernel that it is to normalise like this.

        `others` are further parameters that it is to have.
        """
        given, own, its = self._given, type(self).__name__, type(self._given).__name__
        if not (is_classifier(given) or is_regressor(given)):
            raise ValueError(
                f"estimator={its}() is neither a classifier nor a regressor, so {own} has nothing "
                "to predict: take MKSVC, MKFDA, MKRidge, MKSVR or one of those with CV."
            )
        if given.kernels is not None:
            raise ValueError(
                f"estimator={its}(...) has kernels of its own, {given.kernels!r}, but learns from "
                f"the one kernel that {own} makes: pass them to {own} itself, and leave those of "
                "the estimator None."
            )
        params: dict[str, Any] = {"kernels": "precomputed", "missing": "error"}
        params |= {"normalize": normalize, "verbose": bool(self.verbose or given.verbose)}
        if self.tol is not None:
            params["tol"] = self.tol
        if getattr(given, "ps", "none") is None:
            # With one kernel all norms are one.
            params["ps"] = [np.inf]
        return clone(given).set_params(**{**params, **others})

    def _rows(self, machine: Any, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        """Rows with whatever the machine is to predict, several labels per sample included."""
        tags = machine.__sklearn_tags__().classifier_tags
        if tags is not None and tags.multi_label and is_multilabel(y):
            return rows_of_any_targets(self, X, y, sample_weight)
        return self._target_rows(machine, X, y, sample_weight, centred=False)

    def _target_rows(
        self, machine: Any, X: Any, y: Any, sample_weight: Any, *, centred: bool
    ) -> TrainingRows:
        """Rows with what the machine is to predict, for kernels that are `centred` or not."""
        if is_classifier(machine):
            read = centred_rows if centred else labelled_rows
            return read(self, X, y, sample_weight, getattr(machine, "class_weight", None))
        if centred:
            return ridge_rows(self, X, y, sample_weight)
        several = machine.__sklearn_tags__().target_tags.multi_output
        return targeted_rows(self, X, y, sample_weight, several=several)

    def _attributes(
        self, kernels: SourceKernels, machine: Any, predictor: MergedKernel
    ) -> dict[str, Any]:
        """Fitted attributes, the weights of the rule apart."""
        union = {
            name: value
            for name, value in kernels.kernels.source.attributes.items()
            if name == "union_"
        }
        shared = {n: getattr(machine, n) for n in _OF_THE_MACHINE if hasattr(machine, n)}
        return {
            **kernels.rows.attributes,
            **union,
            **shared,
            "kernel_names_": kernels.stack.names,
            "estimator_": machine,
            "_predictor": predictor,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        theirs = self._given.__sklearn_tags__()
        tags.estimator_type = theirs.estimator_type
        tags.classifier_tags, tags.regressor_tags = theirs.classifier_tags, theirs.regressor_tags
        tags.transformer_tags, tags.target_tags = theirs.transformer_tags, theirs.target_tags
        return tags

    # -- answers ---------------------------------------------------------------------------

    def _answers(self, method: str, X: Any) -> np.ndarray:
        check_is_fitted(self, "estimator_")
        return self._predictor.answers(self, X, method)

    @by_blocks
    def predict(self, X: Any) -> np.ndarray:
        """Class or value of each row, by the machine."""
        return self._answers("predict", X)

    @available_if(_offers("decision_function"))
    @by_blocks
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the classes, by the machine."""
        return self._answers("decision_function", X)

    @available_if(_offers("predict_proba"))
    @by_blocks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, by the machine."""
        return self._answers("predict_proba", X)

    @available_if(_offers("predict_log_proba"))
    @by_blocks
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities, by the machine."""
        return self._answers("predict_log_proba", X)

    @available_if(_offers("transform"))
    @by_blocks
    def transform(self, X: Any) -> np.ndarray:
        """Project on the discriminant directions, by the machine."""
        return self._answers("transform", X)

    @available_if(_offers("transform"))
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and project the training rows on the discriminant directions."""
        self.fit(X, y, sample_weight)  # type: ignore[attr-defined]
        return self.transform(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy or R² on new samples; rows of X and y are matched as in ``fit``."""
        judge: Any = ClassifierMixin if is_classifier(self) else RegressorMixin
        return scored(partial(judge.score, self), self, X, y, sample_weight)
