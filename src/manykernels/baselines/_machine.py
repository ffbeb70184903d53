"""Estimators that make one kernel of several: their machine, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..estimators import MKSVC
from ..estimators._base import POSITIVE, KernelEstimator, estimator
from ..estimators._inputs import by_blocks, scored
from ..estimators._multilabel import is_multilabel
from ..estimators._outputs import gives_probabilities
from ..estimators._rows import (
    TrainingRows,
    centred_rows,
    labelled_rows,
    ridge_rows,
    rows_of_any_targets,
    targeted_rows,
)
from ._merged import MergedKernel, SourceKernels

# Attributes of the machine that every estimator has.
_OF_THE_MACHINE = ("classes_", "certificate_", "n_iter_", "n_inner_solves_", "history_")


def _offers(method: str) -> Callable[[Any], bool]:
    """Whether the machine of a rule has a method."""

    def check(rule: Any) -> bool:
        has_it = hasattr(vars(rule).get("estimator_", rule._given), method)
        return has_it and ("proba" not in method or gives_probabilities(rule))

    return check


@estimator
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
    _expansion: ClassVar[MergedKernel]

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
        self, kernels: SourceKernels, machine: Any, expansion: MergedKernel
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
            "_expansion": expansion,
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
        return self._expansion.answers(self, X, method)

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
