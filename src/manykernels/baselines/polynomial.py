"""PolynomialCombination: ridge regression on a polynomial of kernels, learnt by descent."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from .._sklearn import Interval, Options
from .._warnings import warn_caller
from ..discriminant import fisher_targets
from ..estimators import MKFDA, MKRidge
from ..estimators._base import NON_NEGATIVE, POSITIVE, KernelEstimator, estimator, fits
from ..estimators._progress import FitTask
from ..estimators._ridge import ScaledTargets
from ._machine import OneKernelMachine
from ._merged import PowerOfSum, SourceKernels
from ._polynomial import Ball, PolynomialDescent, PolynomialRidge


@estimator
class PolynomialCombination(OneKernelMachine, KernelEstimator):
    """Ridge regression, or a discriminant, on a polynomial combination of kernels.

    ``K_μ = Σ_ij μ_i μ_j K_i ∘ K_j``, products entry by entry, or another degree. The weights μ
    minimise the objective of the machine over ``{μ ≥ 0, ‖μ − μ0‖ ≤ Λ}``, by projected gradients
    (Cortes, Mohri and Rostamizadeh 2009; quoted in Gönen & Alpaydın 2013, section 4.5).

    Parameters
    ----------
    estimator : MKRidge or MKFDA, default=None
        The machine, whose λ, `reg`, is a number. A copy of it is fitted to the combination; its
        own `kernels` must be None, and its p, `normalize` and `missing` are not looked at. None
        takes an :class:`~manykernels.MKRidge`, the regression of the paper.
    degree : int, default=2
        Degree of the polynomial. Terms of mixed kernels count as often as they come when the
        power of the sum is multiplied out. Degree 1 is the weighted sum.
    norm : {1, 2}, default=2
        Norm of the set of weights.
    center : float, default=0.0
        μ0 ≥ 0, the same for every kernel.
    radius : float, default=1.0
        Λ > 0. For ``center=0`` a larger one acts like a smaller λ.
    normalize : {"multiplicative", "spherical", "trace"} or None, default="multiplicative"
        How kernels are made comparable before they are combined; products of kernels depend on
        their origin, so they are not centred before. The machine centres the combination.
    tol : float, default=1e-5
        Relative change of the objective, two steps in a row, at which the descent stops.
    max_iter : int, default=200
        Most steps.
    verbose : bool, default=False
        Print a line per step.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        μ, of the normalised kernels.
    certificate_ : StationarityCertificate
        How close μ is to a stationary point: ``objective``, ``gradient_norm`` (the length of a
        step down the gradient that is projected on the set of weights), ``change``, ``converged``
        and the same in words. The objective is not convex if the degree is above 1, and other
        weights may have a lower one. That of the machine on the combination is
        ``estimator_.certificate_``, with the same objective.
    n_iter_ : int
        Steps of the descent; one if it ended where it started.
    n_inner_solves_ : int
        Factorisations, those of the machine included.
    history_ : dict of list
        ``objective``, ``gradient_norm`` and ``n_inner_solves`` at the start and after each step.

    Notes
    -----
    The descent starts from equal weights and uses no random numbers. Armijo's rule makes it
    monotone. Targets are those of the machine, Fisher's for a discriminant. With one kernel and
    the default set of weights it is the machine on ``K ∘ K``.

    References
    ----------
    C. Cortes, M. Mohri, A. Rostamizadeh. Learning non-linear combinations of kernels. NIPS 2009.
    M. Gönen, E. Alpaydın. Localized algorithms for multiple kernel learning. Pattern
    Recognition 46, 2013.

    Examples
    --------
    A product of two columns, which no sum of kernels of one column each can follow:

    >>> import numpy as np
    >>> from manykernels import MKRidge
    >>> from manykernels.baselines import PolynomialCombination
    >>> from manykernels.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 3))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=150)
    >>> kernels = {f"column{k}": Linear().on([k]) for k in range(3)}
    >>> model = PolynomialCombination(kernels).fit(X[:100], y[:100])
    >>> model.certificate_.converged
    True
    >>> model.weights_.round(1)
    array([0.7, 0.7, 0. ])
    >>> model.score(X[100:], y[100:]) > 0.95
    True
    >>> MKRidge(kernels).fit(X[:100], y[:100]).score(X[100:], y[100:]) < 0.1
    True
    """

    degree: int = 2
    norm: int = 2
    center: float = 0.0
    radius: float = 1.0
    tol: float = 1e-5
    max_iter: int = 200

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [MKRidge, MKFDA, None],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "norm": [Options(Real, {1, 2})],
        "center": NON_NEGATIVE,
        "radius": POSITIVE,
        "tol": POSITIVE,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    _default: ClassVar[type] = MKRidge

    @fits
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the weights of the kernels, and fit the machine."""
        machine = self._new_machine(tol=self._given.tol)
        _refuse_other_objectives(machine)
        rows = self._target_rows(machine, X, y, sample_weight, centred=True)
        task = FitTask.begin(self, X, y, self.max_iter + 2)
        kernels = SourceKernels.of(self, rows, self.normalize, shift_invariant=False)
        if is_classifier(machine):
            targets = fisher_targets(rows.labels, kernels.kernels.labelled(rows).masses)
        else:
            targets = ScaledTargets.of(rows.targets.reshape(len(rows), -1), rows.counts).columns
        objective = PolynomialRidge(
            kernels.stack, targets, float(machine.reg), rows.weights, self.degree
        )
        ball = Ball(int(self.norm), float(self.center), float(self.radius))
        descent = PolynomialDescent.run(
            objective, ball, tol=self.tol, max_iter=self.max_iter, observer=task
        )
        self._warn_unless_converged(descent)
        weights = descent.point.weights
        power = PowerOfSum("polynomial", weights, self.degree)
        expansion = kernels.learn(machine, power, y, sample_weight, task)
        certificates = [step.certificate for step in descent.history]
        history = {
            "objective": [one.objective for one in certificates],
            "gradient_norm": [one.gradient_norm for one in certificates],
            "n_inner_solves": [step.n_inner_solves for step in descent.history],
        }
        return self._keep(
            task,
            self._attributes(kernels, machine, expansion),
            weights_=weights,
            certificate_=descent.certificate,
            n_iter_=max(1, descent.history[-1].iteration),
            n_inner_solves_=objective.n_inner_solves + machine.n_inner_solves_,
            history_=history,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if tags.regressor_tags is not None:
            # Ready-made kernels may be such that their powers cannot follow what they themselves
            # can: the square of a linear kernel has no linear terms.
            tags.regressor_tags.poor_score = self._is_precomputed
        return tags

    def _warn_unless_converged(self, descent: PolynomialDescent) -> None:
        certificate = descent.certificate
        if certificate.converged:
            return
        reason = " A callback asked for it." if descent.stopped else ""
        name = type(self).__name__
        warn_caller(
            f"{name} {certificate.status}. {certificate.message}{reason}", ConvergenceWarning
        )


def _refuse_other_objectives(machine: Any) -> None:
    """Refuse a machine whose objective is not that of ridge regression on the one kernel."""
    if not isinstance(machine.reg, Real):
        raise ValueError(
            f"estimator.reg={machine.reg!r}: the weights of a polynomial combination are learnt "
            "at a given λ, a number."
        )
    if getattr(machine, "denoise", None) is not None:
        raise ValueError(
            "estimator.denoise is not None: the machine would learn from another kernel than the "
            "one whose weights were learnt. Leave it None."
        )
