"""Several yes-or-no labels per sample: one problem per label, all on the same kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import gen_batches
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length

from .._sklearn import check_sample_weight, num_samples
from ..kernels import KernelStack
from ._inputs import Source, block_while_fitting, by_blocks, read_training
from ._outputs import gives_probabilities
from ._progress import FitTask

Ask = Callable[[Any, KernelStack], np.ndarray]

# Rows of a test block: few enough for memory, many enough for fast matrix products.
_BLOCK_ROWS = 512


def is_multilabel(y: Any) -> bool:
    """Whether `y` is an indicator matrix, one column of 0 and 1 per label."""
    if y is None:
        return False
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1 and type_of_target(y) == "multilabel-indicator"


@dataclass(frozen=True)
class LabelModels:
    """A model on precomputed kernels for every label, as in the experiments of Yan 2012 on VOC.

    The kernels, which `source` gives, are computed once for all labels.
    """

    source: Source
    models: list[Any]

    def answers(self, estimator: Any, X: Any, ask: Ask) -> np.ndarray:
        """What the model of every label answers about the rows of X, side by side."""
        data = self.source.read(estimator, X)
        kernels = np.arange(len(self.source.names))
        answers = []
        for rows in gen_batches(int(num_samples(data)), _BLOCK_ROWS):
            block = self.source.block(data, rows, kernels)
            answers.append(np.column_stack([ask(model, block) for model in self.models]))
        return np.vstack(answers)


def _label_by_label(ask: Ask) -> Callable[[Any], Any]:
    """Decorator of methods without a body, which `ask` the model of every label.

    With one label per sample, the inherited method of the same name is called.
    """

    def decorate(method: Any) -> Any:
        @by_blocks
        @wraps(method)
        def answer(estimator: Any, X: Any) -> Any:
            if hasattr(estimator, "estimators_"):
                return estimator._expansion.answers(estimator, X, ask)
            return getattr(super(LabelwiseAnswers, estimator), method.__name__)(X)

        return answer

    return decorate


class LabelwiseAnswers:
    """Methods of a discriminant that may have been fitted to several labels per sample."""

    @_label_by_label(lambda model, block: model.decision_function(block))
    def decision_function(self, X: Any) -> Any:
        """As :meth:`MKFDA.decision_function`; (n_rows, n_labels) with several labels."""

    @_label_by_label(lambda model, block: model.predict(block))
    def predict(self, X: Any) -> Any:
        """Most probable class, or an indicator matrix with several labels."""

    @available_if(gives_probabilities)
    @_label_by_label(lambda model, block: model.predict_proba(block)[:, 1])
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, or those of every label, (n_rows, n_labels)."""

    @available_if(gives_probabilities)
    @_label_by_label(lambda model, block: model.predict_log_proba(block)[:, 1])
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of :meth:`predict_proba`."""

    @_label_by_label(lambda model, block: model.transform(block))
    def transform(self, X: Any) -> Any:
        """Project on the discriminant directions; one per label with several labels."""


def fit_labels(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Fit a clone of the estimator to every label, and the estimator to all of them."""
    indicators = np.asarray(y.todense()) if sparse.issparse(y) else np.asarray(y)
    data = read_training(estimator, X)
    check_consistent_length(data.X, indicators)
    if sample_weight is not None:
        sample_weight = check_sample_weight(sample_weight, data.X, ensure_non_negative=True)
    stack, source = data.compute(sample_weight, True, None)
    stack = stack._changed(groups=data.groups)
    cv = estimator.cv
    validation = None
    if isinstance(cv, tuple) and len(cv) == 2 and is_multilabel(cv[1]):
        block = block_while_fitting(source, estimator, data, cv[0])
        validation = block, np.asarray(cv[1]).astype(int)
    task = FitTask.begin(estimator, X, y, indicators.shape[1])
    models = []
    for k, column in enumerate(indicators.T.astype(int)):
        label = task.subtask(f"label {k}")
        model = clone(estimator).set_params(kernels="precomputed").set_callbacks()
        if validation is not None:
            model.set_params(cv=(validation[0], validation[1][:, k]))
        try:
            with label.passed_on_to(model):
                models.append(model.fit(stack, column, sample_weight))
        except ValueError as error:
            raise ValueError(f"Label {k}: {error}") from error
        label.end()
    arrays = {
        name: np.array([getattr(model, name) for model in models])
        for name in ("p_", "reg_", "best_score_", "weights_")
    }
    return estimator._keep(
        task,
        data.features,
        source.attributes,
        arrays,
        classes_=np.arange(len(models)),
        estimators_=models,
        certificate_=[model.certificate_ for model in models],
        cv_results_=[model.cv_results_ for model in models],
        kernel_names_=models[0].kernel_names_,
        _expansion=LabelModels(source, models),
    )
