"""CGBoost: boosting of kernel columns by column generation."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._sklearn import Interval
from .._warnings import warn_caller
from ..estimators._base import POSITIVE, KernelEstimator, estimator, fits
from ..estimators._kernels import TrainingKernels
from ..estimators._learning import joined_certificate, run_attributes
from ..estimators._machines import MachineKernels, SupportAttributes
from ..estimators._outputs import KernelClassifier
from ..estimators._progress import FitTask
from ..estimators._rows import labelled_rows, one_against_rest
from ._columns import ColumnGeneration, ColumnMachine, Columns
from ._mixture import KernelMixture, MixtureAttributes


@estimator
class CGBoost(KernelClassifier, MixtureAttributes, SupportAttributes, KernelEstimator):
    """CG-Boost: a machine of few columns of the kernels, each with a coefficient of its own.

    Every column ``k_j(·, x_i)`` of every kernel is a weak learner. The machine with the smallest
    sum of absolute coefficients and of losses is found without looking at most of them: in turn a
    linear program is solved with the columns known so far, and the column of each kernel that
    would help most is added. More than two classes are learnt one against the rest.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of samples inside the margin, acting on the kernels after `normalize`.
    tol : float, default=1e-6
        Relative duality gap between the machine found and the best one of all columns, at which
        to stop.
    max_iter : int, default=1000
        How often columns are added, at most, for each class.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,), or (n_classes, n_kernels)
        Sum of the absolute coefficients of the columns of each kernel; a row for each of more than
        two classes.
    support_ : ndarray of int
        Row numbers of the samples whose columns are used, in any kernel and class.
    dual_coef_ : ndarray of shape (n_kernels, n_outputs, n_support)
        ``Σ_j weights_[j] K_j(X, support) @ dual_coef_[j].T + intercept_`` is the output, with K_j
        normalised; their absolute values sum to one in every kernel with weight.
    n_inner_solves_ : int
        Number of linear programs.
    history_ : dict of list
        ``objective``, ``rel_gap`` and ``n_inner_solves`` at each iteration; for several classes
        also ``machine``, the number of the class.

    Notes
    -----
    This is the method with the 1-norm of the coefficients and the hinge loss, a linear program.
    Bi et al. also have one with the 2-norm. The bias is not penalised.

    The norm is that of the coefficients, not of a function in the feature space of a kernel: a
    kernel has the more influence the larger its values are.

    References
    ----------
    J. Bi, T. Zhang, K. P. Bennett. Column-generation boosting methods for mixture of kernels.
    KDD 2004.
    P. Gehler, S. Nowozin. On feature combination for multiclass object classification. ICCV 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels.baselines import CGBoost
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CGBoost(C=1.0).fit(X[::2], y[::2])
    >>> model.certificate_.converged
    True
    >>> len(model.support_) < 40
    True
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    C: float = 1.0
    tol: float = 1e-6
    max_iter: int = 1000

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": POSITIVE,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the machine."""
        rows = labelled_rows(self, X, y, sample_weight, None)
        signs = one_against_rest(rows.labels, len(rows.classes))
        task = FitTask.begin(self, X, y, signs.shape[1] * (self.max_iter + 1))
        training = TrainingKernels.of(rows, rows.counts)
        # Not centred: coefficients do not sum to zero.
        kernels = MachineKernels.prepared(training, rows, self.normalize, has_bias=False)
        columns = Columns.of(kernels.stack, rows.factors)
        penalties = self.C * rows.factors
        machines = [
            ColumnGeneration(columns, own, penalties).learn(self.tol, self.max_iter, task)
            for own in signs.T
        ]
        certificate = joined_certificate(machines, self.tol)
        if not certificate.converged:
            self._warn(certificate, machines, task)
        mixture = _mixture_of(machines, columns)
        return self._keep(
            task,
            mixture.attributes(rows, kernels),
            run_attributes(machines),
            certificate_=certificate,
        )

    def _warn(self, certificate: Any, machines: Sequence[ColumnMachine], task: FitTask) -> None:
        """Say how far from the best machine this may be, and what would help."""
        failures = {machine.status for machine in machines if machine.status}
        way_out = ""
        if task.stopped:
            way_out = " A callback asked to stop."
        elif failures:
            way_out = f" A linear program ended as {', '.join(sorted(failures))}: lower C."
        elif any(machine.n_iter > self.max_iter for machine in machines):
            way_out = f" max_iter={self.max_iter} was reached: raise max_iter or tol."
        elif certificate.status == "stopped":
            way_out = (
                " No column would help, tol is less than can be had: raise tol, lower C, or "
                "centre and scale the data behind the kernels."
            )
        message = f"{type(self).__name__} is {certificate.status}. {certificate.message}{way_out}"
        warn_caller(message, ConvergenceWarning)


def _mixture_of(machines: Sequence[ColumnMachine], columns: Columns) -> KernelMixture:
    """All machines, on the columns as they were before centring."""
    alpha = np.array([machine.coefficients for machine in machines])
    shifts = np.einsum("kjl,jl->k", alpha, columns.offsets)
    intercept = np.array([machine.bias for machine in machines]) - shifts
    weights = np.abs(alpha).sum(axis=2)
    coefficients = (alpha / np.where(weights > 0.0, weights, 1.0)[:, :, None]).transpose(1, 2, 0)
    return KernelMixture(weights if len(weights) > 1 else weights[0], coefficients, intercept)
