r"""EasyMKL: kernel weights from the distance between two distributions of samples.

A distribution on each of two classes, ``γ ∈ Γ = {γ ≥ 0, Σ_{y=1} γ_i = Σ_{y=−1} γ_i = 1}``, has a
mean in the feature space of every kernel. With Y = diag(y), ``γᵀYK_jYγ`` is the squared distance
of the two means in kernel j, and the weights are these distances at the hardest distributions
(Aiolli and Donini 2015):

    γ* = argmin_{γ ∈ Γ} (1 − λ) γᵀY(Σ_j K_j)Yγ + λ‖γ‖²
    β_j ∝ γ*ᵀYK_jYγ*

**As a support vector machine.** Let ``Q(γ)`` be the objective, and v = tYγ with t > 0. Then v
sums to zero, and ``Σ_i y_i v_i = 2t``, so that

    max_v Σ_i y_i v_i − ½ Q(Yv) = max_γ max_t 2t − ½ t² Q(γ) = 2 / min_γ Q(γ),

where the maximum over v is the dual of a machine with squared hinge loss on the kernel
``(1 − λ) Σ_j K_j`` with C = 1/λ. So γ is the normalised solution of that machine, and as the
machine's primal objective P is an upper bound on the maximum, ``min Q ≥ 2/P``: its duality gap is
a certificate of γ.

A sample of weight s represents s equal samples, among which γ_i is divided: they contribute
``λγ_i²/s`` to ``λ‖γ‖²``, as if C were s/λ.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ..estimators.base import POSITIVE, FitTask, estimator, fits
from ..estimators.prediction import KernelClassifier
from ..estimators.svm import INNER_SHARE, LearntMachine, MachineKernels, SupportAttributes
from ..estimators.training_rows import labelled_rows, one_against_rest
from ..kernels.tables import Table
from ..losses.base import Certificate, Evaluation
from ..losses.svm import HingeLoss, SquaredHingeLoss
from ..utils.sklearn import Interval, warn_caller
from ..utils.storable import storable

# Least λ, relative to the mean diagonal of the sum of kernels: at λ = 0 there is no machine if the
# classes overlap. In this case distances vanish as λ², and λ is increased tenfold until their
# relative rounding errors are at most the second number, but not above the third.
_LEAST_SHARE, _SHARE_OF_ERRORS, _LARGEST_RAISED = 1e-9, 1e-4, 1e-3


@storable
@estimator(SupportAttributes)
class EasyMKL(KernelClassifier):
    """Kernel weights from the distance between classes, then a support vector machine.

    Finds distributions of the samples of two classes that are hardest to distinguish: their means
    in the feature space of the sum of all kernels have the smallest distance. The weight of a
    kernel is the squared distance of these means in its own feature space. More than two classes
    are learnt one against the rest, with weights for each.

    Parameters
    ----------
    lam : float in [0, 1], default=0.1
        λ, which makes the distributions more uniform. At 1 they are uniform, so that weights are
        squared distances of class means; at 0 they are the nearest points of the convex hulls of
        the two classes, a hard margin; if the hulls intersect, λ is increased until the weights
        exceed their rounding errors, see `lam_`.
    C : float, default=1.0
        Penalty of samples inside the margin of the final machine, for kernels after `normalize`.
    tol : float, default=1e-4
        Relative duality gap of the distributions and of the machines.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,), or (n_classes, n_kernels)
        Weights of the normalised kernels, which sum to one; a row for each of more than two
        classes.
    distributions_ : ndarray of shape (n_samples, 1), or (n_samples, n_classes)
        γ of the samples with nonzero weight, a column for each machine; each sums to one over the
        samples of the class, and over the others.
    lam_ : float
        λ that was used: `lam`, unless it was increased.
    certificate_ : Certificate
        Certificate of the distributions: ``primal`` is their objective, summed over machines,
        ``dual`` a lower bound on its minimum.
    history_ : dict of list
        ``objective``, ``rel_gap`` and ``n_inner_solves`` of the distributions, with one entry,
        since the weights are not iterated.
    n_iter_ : int
        1.
    n_inner_solves_ : int
        Number of machines that were solved, two for each weight vector.

    Notes
    -----
    Unlike those of :class:`~manykernels.MKSVC`, the weights do not minimise the objective of the
    machine: they are the solution of one quadratic program on the plain sum. A kernel of much
    larger scale than the others dominates this program, hence `normalize`. The paper divides
    kernels by their mean diagonal; "multiplicative" does so after centring, which otherwise
    affects neither the program nor the machine. For precomputed kernels with ``normalize=None``
    the weights are those of MKLpy's ``EasyMKL``.

    The final machine is a C-SVM, as in MKLpy with ``learner=SVC(C=...)``.

    References
    ----------
    F. Aiolli, M. Donini. EasyMKL: a scalable multiple kernel learning algorithm.
    Neurocomputing 169, 2015.

    Examples
    --------
    >>> from manykernels.baselines import EasyMKL
    >>> from manykernels.datasets import load_digit_views
    >>> from manykernels.kernels import RBF
    >>> views, y = load_digit_views(noise=1)
    >>> model = EasyMKL(RBF()).fit(views[:500], y[:500] == 3)
    >>> dict(zip(model.kernel_names_, model.weights_.round(2)))["noise1"] < 0.2
    np.True_
    >>> model.score(views[500:], y[500:] == 3) > 0.95
    True
    """

    lam: float = 0.1
    C: float = 1.0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "lam": [Interval(Real, 0, 1, closed="both")],
        "C": POSITIVE,
    }

    @fits
    def fit(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the distributions, the weights and the machines."""
        rows = labelled_rows(self, X, y, sample_weight, None)
        signs = one_against_rest(rows.labels, len(rows.classes))
        task = FitTask.begin(self, X, y, 1 + signs.shape[1])
        kernels = MachineKernels.of(rows, self.normalize, None)
        hardest = HardestDistributions.find(
            kernels.stack, signs, float(self.lam), rows.factors, self.tol
        )
        task(_Progress(0, f"relative gap {hardest.certificate.rel_gap:.1e}"))
        machines = []
        for k, weights in enumerate(hardest.weights):
            loss = HingeLoss(
                kernels.stack, signs[:, k], self.C * rows.factors, INNER_SHARE * self.tol
            )
            machines.append(loss.evaluate(weights))
            task(_Progress(k + 1, f"machine {k}  support vectors {_n_support(machines[-1])}"))
        learnt = _Weighed(kernels.stack.names, machines, hardest)
        learnt.warn_unless_converged()
        return self._keep(task, LearntMachine.of(rows, kernels, learnt).attributes)


@dataclass(frozen=True)
class HardestDistributions:
    """γ* of every machine, with signs: ``Yγ`` of shape (m, n_machines), and the certificate.

    `lam` is the λ that was used, `weights` are β, (n_machines, n_kernels).
    """

    signed: np.ndarray
    certificate: Certificate

    lam: float
    weights: np.ndarray

    @classmethod
    def find(
        cls, stack: Any, signs: np.ndarray, lam: float, counts: np.ndarray, tol: float
    ) -> HardestDistributions:
        """Compute γ* for each column of `signs`; increase λ until it exceeds rounding errors."""
        diagonal = (1.0 - lam) * float(stack.row_diag.sum(axis=0).mean())
        # If all kernels are zero, any γ is optimal; this λ gives the uniform one.
        ridge = max(lam, _LEAST_SHARE * diagonal) or 1.0
        while True:
            loss = SquaredHingeLoss(stack, signs, counts / ridge, INNER_SHARE * tol)
            signed, certificate = _normalised(
                loss.evaluate(np.full(stack.n_kernels, 1.0 - lam)), tol
            )
            squares = np.einsum("mk,jmk->kj", signed, stack.apply(signed))
            errors = stack.form_errors(signed, signed).sum()
            clear = errors <= _SHARE_OF_ERRORS * squares.sum(axis=1).min()
            if clear or 10.0 * ridge > _LARGEST_RAISED * diagonal:
                used = lam if lam > 0.0 and ridge == lam else ridge
                return cls(signed, certificate, used, _shares(squares))
            ridge *= 10.0


def _normalised(point: Any, tol: float) -> tuple[np.ndarray, Certificate]:
    """Return Yγ from machines with the squared hinge loss, and the certificate of γ."""
    v = point.dual
    totals = 0.5 * np.abs(v).sum(axis=0)  # t
    primals = np.array([solution.primal for solution in point.solutions])
    duals = np.array([solution.dual for solution in point.solutions])
    # D = 2t − ½t²Q.
    values = 2.0 * (2.0 * totals - duals) / totals**2
    bounds = 2.0 / primals
    value, bound = float(values.sum()), float(bounds.sum())
    rounding = float(values.sum() * point.rounding / primals.sum())
    signed = v / totals
    gap = float((values - bounds).sum())
    return signed, Certificate(value, bound, gap, tol, rounding, signed)


def _shares(squares: np.ndarray) -> np.ndarray:
    """Return ``β_j ∝ γᵀYK_jYγ`` of every machine, (n_machines, n_kernels)."""
    squares = np.maximum(squares, 0.0)
    totals = squares.sum(axis=1, keepdims=True)
    # Equal weights if no kernel separates the classes.
    equal = np.full_like(squares, 1.0 / squares.shape[1])
    return np.divide(squares, totals, out=equal, where=totals > 0.0)


@dataclass(frozen=True)
class _Weighed:
    """Kernel weights, the machines on the weighted sums, and their fitted attributes."""

    names: list[str]
    evaluations: list[Any]
    hardest: HardestDistributions

    @property
    def weights(self) -> np.ndarray:
        """Kernel weights, (n_machines, n_kernels)."""
        return self.hardest.weights

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes."""
        certificate = self.hardest.certificate
        return {
            "kernel_names_": self.names,
            "weights_": self.weights if len(self.weights) > 1 else self.weights[0],
            "distributions_": np.abs(self.hardest.signed),
            "lam_": self.hardest.lam,
            "certificate_": certificate,
            "n_iter_": 1,
            "n_inner_solves_": 2 * len(self.weights),
            "history_": {
                "objective": [certificate.primal],
                "rel_gap": [certificate.rel_gap],
                "n_inner_solves": [len(self.weights)],
            },
        }

    def warn_unless_converged(self) -> None:
        """Warn if the distributions, or the machines, have not reached `tol`."""
        hardest, machines = self.hardest.certificate, self._of_machines()
        if not hardest.converged:
            warn_caller(
                f"The distributions of EasyMKL are {hardest.status}: the relative gap "
                f"{hardest.rel_gap:.1e} or its rounding error {hardest.rel_rounding:.1e} is "
                f"above tol={hardest.tol:g}. Raise lam or tol.",
                ConvergenceWarning,
            )
        if not machines.converged:
            warn_caller(f"The machines of EasyMKL are {machines}", ConvergenceWarning)

    def _of_machines(self) -> Certificate:
        value, slack, rounding = (
            float(sum(getattr(evaluation, name) for evaluation in self.evaluations))
            for name in ("value", "slack", "rounding")
        )
        tol = self.hardest.certificate.tol
        return Certificate(value, value - slack, slack, tol, rounding)


@dataclass(frozen=True)
class _Progress:
    """Progress message of an iteration."""

    iteration: int
    text: str

    def __str__(self) -> str:
        return self.text


def _n_support(evaluation: Evaluation) -> int:
    return int(np.count_nonzero(evaluation.coefficients))
