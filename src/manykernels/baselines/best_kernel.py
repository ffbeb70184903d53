"""BestKernel: a machine on the single kernel that predicts best, chosen by cross-validation."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone, is_classifier

from ..estimators import MKSVCCV
from ..estimators._base import KernelEstimator, estimator, fits
from ..estimators._choice import ChoiceParameters
from ..estimators._progress import FitTask
from ..estimators._splits import LabelSplits, Splits, ValueSplits, is_validation_set
from ._machine import OneKernelMachine
from ._merged import PowerOfSum, SourceKernels


@estimator
class BestKernel(OneKernelMachine, KernelEstimator):
    """A machine on the single best kernel, with its own λ or C, chosen by cross-validation.

    ``RKDA_{K,λ}`` and ``SVM_{K,C}`` of the tables of Ye et al. (2008): every kernel alone, at
    every λ or C, is judged on the same folds, and the best pair is fitted to all samples. With
    the folds of the paper's evaluation around it, this is their double cross-validation.

    Parameters
    ----------
    estimator : MKSVCCV, MKFDACV, MKRidgeCV or MKSVRCV, default=None
        The machine, with the grid of its Cs or λ, its `cv` and its `scoring`. Its own `kernels`
        must be None, its `ps`, `normalize` and `missing` are not looked at. None takes an
        :class:`~manykernels.MKSVCCV`.
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
        How the kernels are normalised, in every fold with constants of its training part.

    Attributes
    ----------
    best_kernel_ : str
        Its name; of kernels with the same score the first.
    best_index_ : int
        Its position among the kernels.
    scores_ : ndarray of shape (n_kernels,)
        Mean score of each kernel over the folds, at its best λ or C. As maxima over a grid they
        are a little high, and so is that of the best kernel: for an estimate of the whole, pass
        the BestKernel itself to ``cross_val_score``.
    weights_ : ndarray of shape (n_kernels,)
        One for the best kernel, zero for the others.

    Notes
    -----
    The folds are those that the machine would take of all kernels together, whichever kernel it is
    fitted to, so that differences of `scores_` are differences of paired scores.

    ``RKDA_λ`` and ``SVM_C`` of the same tables, one kernel with λ or C by cross-validation, are
    ``MKFDACV(kernel)`` and ``MKSVCCV(kernel)``.

    References
    ----------
    J. Ye, S. Ji, J. Chen. Multi-class discriminant kernel learning via convex programming.
    JMLR 9, 2008.

    Examples
    --------
    >>> from manykernels import MKFDACV
    >>> from manykernels.baselines import BestKernel
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views(noise=1)
    >>> model = BestKernel(RBF(), estimator=MKFDACV()).fit(views[:300], y[:300])
    >>> model.best_kernel_ == model.kernel_names_[model.scores_.argmax()]
    True
    >>> model.best_kernel_ != "noise1"
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"estimator": [ChoiceParameters, None]}

    _default: ClassVar[type] = MKSVCCV

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Judge every kernel alone, and keep the machine of the best."""
        machine = self._new_machine(self.normalize)
        rows = self._target_rows(machine, X, y, sample_weight, centred=False)
        task = FitTask.begin(self, X, y, rows.data.n_kernels)
        kernels = SourceKernels.of(self, rows, None)
        machine.set_params(cv=_same_folds(machine, kernels, y))
        scores, best = [], None
        for name, weights in zip(
            kernels.stack.names, np.eye(kernels.stack.n_kernels), strict=True
        ):
            single = clone(machine)
            expansion = kernels.learn(single, PowerOfSum(name, weights), y, sample_weight, task)
            scores.append(single.best_score_)
            if best is None or scores[-1] > best[0].best_score_:
                best = single, expansion, weights
        assert best is not None
        single, expansion, weights = best
        single.set_params(cv=self._given.cv)
        index = int(weights.argmax())
        return self._keep(
            task,
            self._attributes(kernels, single, expansion),
            best_kernel_=kernels.stack.names[index],
            best_index_=index,
            scores_=np.array(scores),
            weights_=weights,
        )


def _same_folds(machine: Any, kernels: SourceKernels, y: Any) -> Any:
    """The parameter ``cv`` with which the machine has the same splits for every kernel."""
    if isinstance(machine.cv, str):
        raise ValueError(
            f"cv={machine.cv!r} deals folds by the kernel that is looked at, but BestKernel "
            "compares kernels on the same folds: use cv=None, a number of folds or a splitter."
        )
    if is_validation_set(machine.cv):
        return machine.cv
    rows, source = kernels.rows, kernels.kernels.source
    splits: Splits
    if is_classifier(machine):
        splits = LabelSplits(machine, rows, source, kernels.kernels.labelled(rows))
    else:
        splits = ValueSplits(machine, rows, source, kernels.kernels.targeted(rows))
    return [(rows.numbers[one.train], rows.numbers[one.test]) for one in splits.of(y)]
