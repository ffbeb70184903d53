"""What a fit proves about its result: the interface of certificates, and the duality gap."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Guarantee(Protocol):
    """The interface of every certificate, enough to report its outcome or to warn.

    A convex problem has a :class:`Certificate`, which bounds the distance to the global optimum;
    a problem that is not convex has a certificate of a local optimum.
    """

    @property
    def claim(self) -> str:
        """What a certificate of this kind proves, in one sentence that names its attributes."""

    @property
    def tol(self) -> float:
        """The tolerance that was asked for."""

    @property
    def converged(self) -> bool:
        """Whether the claim was proved within `tol`, rounding errors included."""

    @property
    def status(self) -> str:
        """The outcome in one or a few words."""

    @property
    def message(self) -> str:
        """The outcome in a sentence with numbers, and what to do if it is not good enough."""

    def __str__(self) -> str:
        """`status` and `message`."""


@dataclass(frozen=True)
class Certificate:
    """Proof of how far weights are from the best ones: ``primal − optimum ≤ gap``.

    Attributes
    ----------
    primal : float
        F at the weights found: the objective of the model found.
    dual : float
        A lower bound on F over the whole weight domain.
    gap : float
        ``primal − dual``, negative only by rounding error.
    tol : float
        The relative gap asked for.
    rounding : float
        Estimated rounding error of `gap`.
    dual_point : ndarray of shape (n_samples, n_outputs) or None
        Dual variables α that prove `dual`: ``D(α, b) ≥ dual`` for all weights b. They are those
        of the model or, where F is not differentiable, a convex combination of several.
    note : str
        What else is to be known of the weights, such as a learnt λ at its least value; it is part
        of the message.

    Examples
    --------
    >>> from manykernels.losses import Certificate
    >>> print(Certificate(primal=2.0, dual=1.9999999, gap=1e-7, tol=1e-6))
    certified: The objective is at most 5.0e-08 of itself above the optimum, within tol=1e-06.
    >>> Certificate(primal=2.0, dual=2.0, gap=0.0, tol=1e-6, rounding=1e-3).status
    'limited by rounding'
    """

    primal: float
    dual: float
    gap: float
    tol: float
    rounding: float = 0.0
    dual_point: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)
    note: str = ""

    @property
    def claim(self) -> str:
        """What a duality gap proves."""
        return (
            "The objective `primal` is at most `gap` above the global optimum: no kernel weights "
            "of the domain have an objective below `dual`."
        )

    @property
    def rel_gap(self) -> float:
        """``gap / |primal|``."""
        return self._relative(self.gap)

    @property
    def rel_rounding(self) -> float:
        """``rounding / |primal|``."""
        return self._relative(self.rounding)

    def _relative(self, size: float) -> float:
        return size / abs(self.primal) if self.primal else size

    @property
    def converged(self) -> bool:
        """Whether both the relative gap and its rounding error are within `tol`."""
        return self.rel_gap <= self.tol and self.rel_rounding <= self.tol

    @property
    def exhausted(self) -> bool:
        """Whether a solver can stop: the gap is within `tol`, or no larger than its rounding."""
        return self.gap <= max(self.tol * abs(self.primal), self.rounding) or self.converged

    @property
    def status(self) -> str:
        """ "certified", "limited by rounding" or "stopped"."""
        if self.converged:
            return "certified"
        limited = self.gap <= self.tol * abs(self.primal) + self.rounding
        return "limited by rounding" if limited else "stopped"

    @property
    def message(self) -> str:
        """The status in a sentence."""
        meaningless = self.status == "limited by rounding" and self.rounding >= abs(self.primal)
        message = _MESSAGES["meaningless" if meaningless else self.status].format(self)
        return f"{message} {self.note}" if self.note else message

    def __str__(self) -> str:
        return f"{self.status}: {self.message}"


_MESSAGES = {
    "certified": "The objective is at most {0.rel_gap:.1e} of itself above the optimum, within "
    "tol={0.tol:g}.",
    "limited by rounding": "The relative gap {0.rel_gap:.1e} has a rounding error of up to "
    "{0.rel_rounding:.1e}, more than tol={0.tol:g}: how far the weights are from optimal cannot "
    "be told. Raise reg (or lower C), centre and scale the data behind the kernels, or raise tol.",
    "meaningless": "The objective {0.primal:.1e} is lost in rounding errors of up to "
    "{0.rounding:.1e}: how far the weights are from optimal cannot be told. Raise reg (or lower "
    "C), centre and scale the data behind the kernels, or use other kernels.",
    "stopped": "The relative gap is {0.rel_gap:.1e}, above tol={0.tol:g}: the weights are at most "
    "that far from optimal.",
}
