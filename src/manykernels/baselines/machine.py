"""Combination of several kernels into one, to which a machine is fitted.

A *merge* combines the kernels of a stack into one, entry by entry. The machine is an estimator of
this package with ``kernels="precomputed"``. It is fitted to a matrix with a row and a column for
every row of X, with zeros for samples of weight zero: the machine leaves these out itself, so that
row indices of splits, support vectors and error messages are those of X.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..estimators import MKSVC
from ..estimators.base import POSITIVE, FitTask, KernelEstimator, estimator
from ..estimators.inputs import (
    Source,
    block_while_fitting,
    by_blocks,
    in_container,
    matched_by_label,
    scored,
)
from ..estimators.kernel_data import (
    KernelPredictor,
    TrainingKernels,
    for_columns,
    transformed_blocks,
)
from ..estimators.prediction import takes_tables
from ..estimators.search import is_validation_set
from ..estimators.svm import MachineKernels, SupportVectors
from ..estimators.training_rows import (
    TrainingRows,
    centred_rows,
    centred_values,
    is_multilabel,
    labelled_rows,
    rows_of_any_targets,
    targeted_rows,
)
from ..kernels import KernelStack
from ..kernels.tables import Table
from ..kernels.transforms import Chain
from ..utils.sklearn import SetOutputMixin, groups_for, num_samples
from ..utils.storable import storable

Numbers = tuple[np.ndarray, np.ndarray]


class Merge(Protocol):
    """Rule that combines kernels into one; kernels of weight zero are not used."""

    @property
    def name(self) -> str:
        """Name of the combined kernel."""

    @property
    def weights(self) -> np.ndarray: ...

    def select(self, kernels: np.ndarray) -> Merge:
        """Return the rule for the kernels with nonzero weights only."""

    def matrix(self, stack: KernelStack, numbers: Numbers) -> np.ndarray:
        """Combine the kernels of a stack; `numbers` are row and column indices for messages."""

    def diagonal(self, diagonals: np.ndarray) -> np.ndarray:
        """Combine the diagonals of the kernels, (n_kernels, n_samples)."""


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
    """Prepared kernels of the training rows of a `rule`, the estimator that combines them."""

    rule: KernelEstimator
    rows: TrainingRows
    kernels: TrainingKernels
    transform: Chain
    stack: KernelStack

    @classmethod
    def of(
        cls,
        rule: KernelEstimator,
        rows: TrainingRows,
        normalize: str | None,
        *,
        shift_invariant: bool = True,
    ) -> Self:
        """Compute or check the kernels of `rows`, complete and normalise them, not centred."""
        kernels = TrainingKernels.of(rows, rows.counts, shift_invariant=shift_invariant)
        transform = kernels.preparation(normalize, center=False)
        return cls(rule, rows, kernels, transform, kernels.prepared(transform, rows.counts))

    def merged(self, merge: Merge) -> KernelStack:
        """Return the combined kernel of the training rows."""
        numbers = self.rows.numbers
        matrix = merge.matrix(self.stack, (numbers, numbers))
        # PSD, or conditionally PSD, if all kernels are; a power of centred kernels is not centred.
        guarantees = replace(self.stack.guarantees, checked=True, centered=False)
        stack = KernelStack(matrix[None], [merge.name], gram=True)
        # Given groups are passed to machines that take them.
        groups = self.rows.groups if self.rows.given_groups is None else None
        return stack._changed(guarantees=guarantees, groups=groups)

    def learn(
        self,
        machine: KernelEstimator,
        merge: Merge,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        task: FitTask,
        check: Callable[[KernelStack], KernelStack] = lambda kernel: kernel,
    ) -> MergedKernel:
        """Fit the machine to the combined kernel, after `check`, as part of `task`.

        Returns the combined kernel of new samples.
        """
        width = len(self.rows) if sample_weight is None else len(np.asarray(sample_weight))
        numbers = self.rows.numbers
        combined = check(self.merged(merge))
        if width > len(numbers):
            matrix = np.zeros((width, width))
            matrix[np.ix_(numbers, numbers)] = combined.kernel(0)
            groups = None
            if combined.groups is not None:
                # Rows of weight zero are in groups of their own.
                groups = len(numbers) + np.arange(width)
                groups[numbers] = combined.groups
            wide = KernelStack(matrix[None], combined.names, gram=True)
            combined = wide._changed(guarantees=combined.guarantees, groups=groups)
        cv: Any = getattr(machine, "cv", None)
        if is_validation_set(cv) and len(cv) == 2:
            machine.set_params(cv=self._validation_set(merge, cv, width))
        subtask = task.subtask(merge.name)
        with warnings.catch_warnings(), subtask.passed_on_to(machine):
            # Constant kernels have caused a warning with their own names.
            warnings.filterwarnings("ignore", "Nothing can be learnt from kernels", UserWarning)
            given = groups_for(machine, self.rows.given_groups)
            machine.fit(combined, y, sample_weight, **given)
        subtask.end()
        if cv is not None:
            # The machine must not keep the kernels of a validation set.
            machine.set_params(cv=cv)
        return MergedKernel.of(self, merge, _columns_of(machine, numbers), width)

    def _validation_set(self, merge: Merge, cv: tuple[Any, Any], width: int) -> tuple[Any, Any]:
        """Replace X_val in a pair (X_val, y_val) by its combined kernel."""
        X, y, *_ = matched_by_label(self.rule, *cv)
        block = block_while_fitting(self.kernels.source, self.rule, self.rows.data, X)
        block = self.transform.transform(block)
        return _wide(merge, block, np.arange(len(block)), self.rows.numbers, width), y


@storable
@dataclass(frozen=True)
class MergedKernel:
    """The combined kernel between new samples and the training samples that a machine uses.

    `source` has these training samples, whose row indices in X are `columns`. `transform` prepares
    its kernels with the indices `inputs`.
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

    def answers(self, rule: OneKernelMachine, X: Table, method: str) -> np.ndarray:
        """Call a method of the machine of a fitted rule on new X, in blocks of rows."""
        data = self.source.read(rule, X)
        call, n_kernels = getattr(rule.estimator_, method), len(self.inputs)
        blocks = transformed_blocks(self.source, self.transform, self.inputs, data, n_kernels)
        numbers = np.arange(int(num_samples(data)))
        return np.concatenate(
            [
                call(_wide(self.merge, block, numbers[rows], self.columns, self.width))
                for rows, block in blocks
            ]
        )


def _columns_of(machine: KernelEstimator, numbers: np.ndarray) -> np.ndarray:
    """Return the row indices in X of the training samples that a fitted machine uses."""
    predictor = machine._predictor
    if not isinstance(predictor, KernelPredictor) or predictor.source.columns is None:  # type: ignore[union-attr]
        return numbers
    return predictor.source.columns  # type: ignore[union-attr]


def _wide(
    merge: Merge, block: KernelStack, rows: np.ndarray, columns: np.ndarray, width: int
) -> KernelStack:
    """Return the combined kernel of a block, with zeros in columns that the machine ignores."""
    matrix = merge.matrix(block, (rows, columns))
    if len(columns) < width:
        narrow, matrix = matrix, np.zeros((len(rows), width))
        matrix[:, columns] = narrow
    diagonal = None if block.row_diag is None else merge.diagonal(block.row_diag)[None]
    return KernelStack(matrix[None], [merge.name], row_diag=diagonal)


# -- Weighted sums of machines, or of columns, of several kernels ---------------------------------


class MixtureAttributes:
    """Fitted attributes of weighted sums of machines, besides those of support vectors.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_kernels, n_outputs, n_support)
        ``Σ_j weights_[j] K_j(X, support) @ dual_coef_[j].T + intercept_`` is the output, with K_j
        normalised; zero for kernels without weight.
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap``, ``rel_gap`` and ``converged`` of the linear program,
        computed independently of its solver; ``dual_point`` is the proof.
    n_iter_ : int
        Length of the history.
    history_ : dict of list
        ``objective``, ``rel_gap`` and ``n_inner_solves`` at each iteration.
    """


@dataclass(frozen=True)
class KernelMixture:
    """``Σ_j weights[j] K_j @ coefficients[j] + intercept``.

    `weights` have the shape (n_kernels,) or (n_outputs, n_kernels), `coefficients`, of all m
    training samples, (n_kernels, m, n_outputs).
    """

    weights: np.ndarray
    coefficients: np.ndarray
    intercept: np.ndarray

    def attributes(self, rows: TrainingRows, kernels: MachineKernels) -> dict[str, Any]:
        """Return the fitted attributes."""
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


# -- Estimators that fit a machine to a combination of kernels ------------------------------------


# Attributes that are copied from the machine.
_OF_THE_MACHINE = ("classes_", "certificate_", "n_iter_", "n_inner_solves_", "history_")


def _offers(method: str) -> Callable[[Any], bool]:
    """Return a check whether the machine of a rule has a method."""

    def check(rule: KernelEstimator) -> bool:
        has_it = hasattr(vars(rule).get("estimator_", rule._given), method)
        return has_it and ("proba" not in method or takes_tables(rule))

    return check


@estimator()
class OneKernelMachine:
    """Parameters and methods of estimators that fit a machine to a combination of kernels.

    Parameters
    ----------
    estimator : estimator of this package, default=None
        The machine: a classifier or a regressor, with or without cross-validation. A clone of it
        is fitted to the combined kernel, for which its p has no effect; its own `kernels` must be
        None, and its `normalize` and `missing` are ignored. X_val of a validation set in its `cv`
        must be a table, views or kernels like X. None: an :class:`MKSVC`.
    tol : float, optional
        Accuracy of the machine, instead of that of `estimator`.
    verbose : bool, default=False
        Whether to print a line per iteration of the machine. For progress bars, use
        ``set_callbacks(ProgressBar())``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted machine, with ``kernels="precomputed"``. Row indices, such as those of its
        support vectors, are those of X.
    classes_ : ndarray of shape (n_classes,)
        Classes, if the machine is a classifier.
    certificate_, n_iter_, n_inner_solves_, history_
        Attributes of the machine.
    """

    estimator: KernelEstimator | None = None
    tol: Any = None
    verbose: bool = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [KernelEstimator, None],
        "tol": [*POSITIVE, None],
    }

    #: Class of the default machine.
    _default: ClassVar[type] = MKSVC
    #: Whether the weights of the rule do not depend on y, which may then have several labels.
    _takes_labels: ClassVar[bool] = False
    #: Results of these methods come in the container of ``set_output``.
    _sklearn_auto_wrap_output_keys: ClassVar[set[str]] = {"transform"}

    estimator_: ClassVar[Any]
    _predictor: ClassVar[MergedKernel]

    @property
    def _given(self) -> Any:
        """The parameter `estimator`, or the default machine; it must not be modified."""
        return self._default() if self.estimator is None else self.estimator

    def _new_machine(self, normalize: str | None = None, **others: Any) -> Any:
        """Return a clone of the machine for a precomputed kernel, with further parameters."""
        machine, name = self._given, type(self).__name__
        kind = type(machine).__name__
        if not (is_classifier(machine) or is_regressor(machine)):
            raise ValueError(
                f"estimator={kind}() is neither a classifier nor a regressor, which {name} needs: "
                "use MKSVC, MKFDA, MKRidge, MKSVR or one of their CV variants."
            )
        if machine.kernels is not None:
            raise ValueError(
                f"estimator={kind}(...) has kernels of its own, {machine.kernels!r}, but is "
                f"fitted to the kernel that {name} combines: pass them to {name} itself, and "
                "leave kernels=None in the estimator."
            )
        params: dict[str, Any] = {"kernels": "precomputed", "missing": "error"}
        params |= {"normalize": normalize, "verbose": bool(self.verbose or machine.verbose)}
        if self.tol is not None:
            params["tol"] = self.tol
        if getattr(machine, "ps", "none") is None:
            # For one kernel, all norms are equivalent.
            params["ps"] = [np.inf]
        return clone(machine).set_params(**{**params, **others})

    def _rows(
        self,
        machine: KernelEstimator,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> TrainingRows:
        """Return training rows with the targets of the machine, which may be multilabel."""
        tags = machine.__sklearn_tags__().classifier_tags
        if tags is not None and tags.multi_label and is_multilabel(y):
            rows = rows_of_any_targets(self, X, y, sample_weight)
            return rows.in_groups(groups, int(num_samples(y)))
        return self._target_rows(machine, X, y, sample_weight, groups, centred=False)

    def _target_rows(
        self,
        machine: KernelEstimator,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        *,
        centred: bool,
    ) -> TrainingRows:
        """Return training rows with the targets of the machine, for centred kernels or not."""
        if is_classifier(machine):
            read = centred_rows if centred else labelled_rows
            class_weight = getattr(machine, "class_weight", None)
            rows = read(self, X, y, sample_weight, class_weight)
        elif centred:
            rows = centred_values(self, X, y, sample_weight, several=True)
        else:
            several = machine.__sklearn_tags__().target_tags.multi_output
            rows = targeted_rows(self, X, y, sample_weight, several=several)
        # The machine says what it keeps together.
        return rows.in_groups(groups, int(num_samples(y)))

    def _attributes(
        self, kernels: SourceKernels, machine: KernelEstimator, predictor: MergedKernel
    ) -> dict[str, Any]:
        """Return the fitted attributes, except for the weights of the rule."""
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
        machine = self._given.__sklearn_tags__()
        tags.estimator_type = machine.estimator_type
        tags.classifier_tags, tags.regressor_tags = machine.classifier_tags, machine.regressor_tags
        tags.transformer_tags, tags.target_tags = machine.transformer_tags, machine.target_tags
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label &= self._takes_labels
        return tags

    # -- predictions -----------------------------------------------------------------------

    def _answers(self, method: str, X: Table) -> np.ndarray:
        check_is_fitted(self, "estimator_")
        return self._predictor.answers(self, X, method)

    @by_blocks
    def predict(self, X: Table) -> np.ndarray:
        """Predict the class or value of each row."""
        return self._answers("predict", X)

    @available_if(_offers("decision_function"))
    @by_blocks
    def decision_function(self, X: Table) -> np.ndarray:
        """Return the scores of the classes."""
        return self._answers("decision_function", X)

    @available_if(_offers("predict_proba"))
    @by_blocks
    def predict_proba(self, X: Table) -> np.ndarray:
        """Return class probabilities."""
        return self._answers("predict_proba", X)

    @available_if(_offers("predict_log_proba"))
    @by_blocks
    def predict_log_proba(self, X: Table) -> np.ndarray:
        """Return logarithms of class probabilities."""
        return self._answers("predict_log_proba", X)

    @available_if(_offers("transform"))
    def transform(self, X: Table) -> np.ndarray:
        """Project on the discriminant directions."""
        return in_container(self, self._projected(X), X)

    @by_blocks
    def _projected(self, X: Table) -> np.ndarray:
        return self._answers("transform", X)

    @available_if(_offers("transform"))
    def set_output(self, *, transform: str | None = None) -> Self:
        """Set what ``transform`` returns: "default" (an array), "pandas" or "polars"."""
        return SetOutputMixin.set_output(self, transform=transform)

    @available_if(_offers("transform"))
    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return names of the discriminant directions: the class name with a number."""
        return ClassNamePrefixFeaturesOutMixin.get_feature_names_out(self, input_features)

    @property
    def _n_features_out(self) -> int:
        return self.estimator_._n_features_out

    @available_if(_offers("transform"))
    def fit_transform(
        self,
        X: Table,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:
        """Fit the estimator and project the training rows on the discriminant directions."""
        self.fit(X, y, sample_weight, groups)  # type: ignore[attr-defined]
        return self.transform(X)

    def score(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy or R² on new samples; rows of X and y are matched as in ``fit``."""
        mixin: Any = ClassifierMixin if is_classifier(self) else RegressorMixin
        return scored(partial(mixin.score, self), self, X, y, sample_weight)
