"""Estimators that also learn on explicit features: any number of rows, in memory or of dask."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils.metaestimators import available_if

from .._sklearn import StrOptions, num_samples
from .._warnings import warn_caller
from ..losses import FeatureLoss, Outline
from ..scale import Approximation, Nystrom
from ..scale.blocks import comes_in_blocks
from ..scale.checks import refuse_no_rows
from ._base import estimator
from ._feature_rows import FeatureRows
from ._gathering import FeatureStream, Gathering
from ._inputs import matched_by_label
from ._learning import WeightLearning
from ._progress import FitTask

# With more rows than this, approximation="auto" approximates: ten kernel matrices of so many rows
# take 2 GB, and a fit about a minute. Below, explicit features save little.
AUTO_ROWS = 5000


# What a discriminant on features cannot have: the value that it needs of a parameter, and why.
DISCRIMINANT_ON_FEATURES: dict[str, tuple[Any, str]] = {
    "denoise": (None, "principal axes are those of a kernel matrix")
}


def _takes_more(estimator: Any) -> bool:
    """Whether an estimator has ``partial_fit``: there is none on kernel matrices."""
    return isinstance(estimator.approximation, Approximation)


@estimator
class ApproximationParameters:
    """Parameters and attributes of estimators that can learn on explicit features.

    Parameters
    ----------
    approximation : Nystrom, RandomFeatures, ExactFeatures, "auto" or None, default=None
        Replace kernels by explicit features, whose products sum up to them: the fit then takes one
        pass over the rows for their sample and one for their moments, and its memory depends on
        the number of features, not of rows. X and y may then be whatever
        :func:`~manykernels.scale.row_blocks` reads, arrays and data frames of dask among them.
        "auto" is ``Nystrom()`` for more than 5000 rows, with a warning that says so. None learns
        from kernel matrices.

    Attributes
    ----------
    approximation_errors_ : ndarray of shape (n_kernels,)
        With an approximation: relative error of each kernel matrix of up to 500 training rows
        that are no landmarks, after centring, in the Frobenius norm.
    landmarks_ : table
        With :class:`~manykernels.Nystrom`: the rows that others are compared with.
    coef_ : ndarray of shape (n_features, n_outputs)
        With an approximation, in the place of `dual_coef_`: coefficients of the features of all
        kernels, one kernel after the other, centred and normalised.
    """

    approximation: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "approximation": [Approximation, StrOptions({"auto"}), None]
    }

    @abstractmethod
    def _gathering(self, approximation: Approximation) -> Gathering:
        """How rows are read; refuses parameters that features do not allow."""

    def _approximation_for(self, X: Any) -> Approximation | None:
        """The approximation to use for this X, if any."""
        given = self.approximation
        if given != "auto":
            return given
        if not comes_in_blocks(X):
            n_rows = int(num_samples(X))
            if n_rows <= AUTO_ROWS:
                return None
            size = f"{n_rows} rows are more than {AUTO_ROWS}"
        else:
            size = "X is not in memory"
        name = type(self).__name__
        warn_caller(
            f'{size}: {name}(approximation="auto") approximates the kernels by Nystrom(). Pass '
            "approximation=Nystrom(n_landmarks=...) to choose how well, or None for exact kernel "
            "matrices.",
            UserWarning,
        )
        return Nystrom()


class LearnsFromMoments:
    """Estimators that need no more of the rows than moments and a sample.

    Attributes
    ----------
    left_out_rows_ : ndarray of int
        With an approximation: numbers of the training rows that left-out results are told for,
        a sample if there are more than 4000.
    """

    #: The rows of all calls of partial_fit; see `_base`.
    _stream: ClassVar[Any]

    approximation: ClassVar[Any]
    _gathering: ClassVar[Callable[..., Gathering]]
    _keep: ClassVar[Callable[..., Any]]

    @abstractmethod
    def _learn_on_features(self, rows: FeatureRows, X: Any, y: Any) -> tuple[FitTask, Any]:
        """The task of the fit and all fitted attributes, given what was gathered."""

    def _fit_on_features(
        self, approximation: Approximation, X: Any, y: Any, sample_weight: Any
    ) -> Self:
        rows = self._gathering(approximation).gather(X, y, sample_weight)
        return self._kept(rows, X, y)

    def _kept(self, rows: FeatureRows, X: Any, y: Any) -> Self:
        task, fitted = self._learn_on_features(rows, X, y)
        kept: Self = self._keep(task, fitted, _stream=rows.stream)
        return kept

    def _add_rows(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        """Learn from more rows, and from all of those before; an error changes nothing."""
        self._validate_params()  # type: ignore[attr-defined]
        X, y, sample_weight = matched_by_label(self, X, y, sample_weight)
        gathering, stream = self._gathering(self.approximation), vars(self).get("_stream")
        if gathering.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" needs the number of samples of every class before the '
                "first of them is used, which partial_fit cannot tell: pass a dict, or fit all "
                "rows at once."
            )
        if stream is None and "_expansion" in vars(self):
            raise ValueError(
                f"This {type(self).__name__} has no moments of the rows that it has learnt from, "
                "because it was loaded from a file, or fitted with other parameters: more rows "
                "cannot be added. Fit a clone, or keep the model in memory (or pickle it)."
            )
        if stream is not None:
            stream.refuse_other_parameters(self)
            stream = stream.copy()
            if classes is not None and not np.array_equal(classes, stream.known_classes):
                raise ValueError(
                    f"classes={list(classes)} are not those of the calls before, "
                    f"{list(stream.known_classes)}: fit a new model."
                )
        for block in gathering.blocks(X, y, sample_weight):
            if stream is None:
                stream = FeatureStream.begun(gathering, block, classes)
            stream.add(replace(block, X=stream.read(block.X)))
        if stream is None:
            refuse_no_rows()
        rows = stream.rows()
        if gathering.classifies and rows.targets.width < 2:
            vars(self)["_stream"] = stream  # there is nothing to tell apart yet
            return self
        return self._kept(rows, X, y)


class ClassifierOfStreams:
    """``partial_fit`` of classifiers."""

    approximation: Any
    _add_rows: ClassVar[Callable[..., Any]]

    @available_if(_takes_more)
    @with_callbacks
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, added to those of all calls before.

        Widths of kernels, landmarks and frequencies are learnt from the rows of the first call.
        Every call solves for the kernel weights, which takes as long for few rows as for many.
        Classes that have not come yet are not predicted: `classes_` has the others. With rows of
        a single class these are kept, and the model is fitted when another one comes.

        Parameters
        ----------
        X : table, dict of tables, Views, or collection of dask
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,)
            All classes; needed in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of calls without weights count once.
        """
        if classes is None and not {"_expansion", "_stream"} & vars(self).keys():
            raise ValueError("classes must be passed on the first call to partial_fit.")
        classes = None if classes is None else np.unique(classes)
        added: Self = self._add_rows(X, y, sample_weight, classes)
        return added


class RegressorOfStreams:
    """``partial_fit`` of regressors."""

    approximation: Any
    _add_rows: ClassVar[Callable[..., Any]]

    @available_if(_takes_more)
    @with_callbacks
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from more rows, added to those of all calls before.

        Widths of kernels, landmarks and frequencies are learnt from the rows of the first call.
        Every call solves for the kernel weights, which takes as long for few rows as for many.

        Parameters
        ----------
        X : table, dict of tables, Views, or collection of dask
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            Rows of calls without weights count once.
        """
        added: Self = self._add_rows(X, y, sample_weight)
        return added


def refuse_with_features(estimator: Any, **allowed: Any) -> None:
    """Raise if a parameter has another value than the ones that explicit features allow."""
    name = type(estimator).__name__
    if estimator._is_precomputed:
        raise ValueError(
            f'{name}(approximation=…) computes features of rows, but kernels="precomputed" has '
            "none: pass kernels and a table, or approximation=None."
        )
    for parameter, (value, why) in {
        "missing": ("error", "samples that lack a view have no features"),
        **allowed,
    }.items():
        given = getattr(estimator, parameter)
        if not (given is value or given == value):
            raise ValueError(
                f"{parameter}={given!r} does not go with approximation={estimator.approximation}: "
                f"{why}. Pass {parameter}={value!r}, or approximation=None."
            )


def refuse_joint(estimator: Any) -> None:
    """Raise if the regularisation is to be learnt as the weight of the identity matrix."""
    if estimator.reg == "joint":
        raise ValueError(
            f'reg="joint" does not go with approximation={estimator.approximation}: the identity '
            "matrix has as many features as there are samples. Pass a number, or use the "
            "estimator with CV in its name."
        )


def feature_learning(learning: WeightLearning) -> WeightLearning:
    """`learning`, unless its solver cannot take the square loss on features."""
    # What the solver asks of sizes is about matrices of samples, of which there are none.
    learning.refuse_unfit(Outline(FeatureLoss, 1, 2, 1))
    return learning
