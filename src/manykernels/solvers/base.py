"""The interface of solvers, the registry of them, and the refusal of problems that do not fit.

A solver lists its needs. A problem that does not meet them is refused before any work, in one
sentence that says which solvers take it. What a solver reports and returns is in
:mod:`~manykernels.solvers.run`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..domains import Array, Domain, Simplex
from ..losses.base import Loss, Outline
from .run import Observer, Run, Solution


@dataclass(frozen=True)
class Problem:
    """What a solver may inspect before any work, to refuse the problem if need be."""

    outline: Outline
    domain: Domain
    tol: float


#: Returns why a solver refuses a problem, as in "works at p=1 only", or None if it takes it.
Need = Callable[["Solver", Problem], str | None]

#: The solver that estimators use unless told otherwise, named first where another one refuses.
DEFAULT_SOLVER = "newton"

#: All solvers of the package, by the name that users give.
SOLVERS: dict[str, type[Solver]] = {}


class Solver(ABC):
    """Minimises a loss over a weight domain.

    A subclass gives its name as a class keyword, which enters it in :data:`SOLVERS`, and
    implements :meth:`_minimize`. All its options have defaults, so that ``SOLVERS[name]()``
    makes one. Estimators read the attributes below and call :meth:`solve`, nothing else.

    Attributes
    ----------
    name : str
        The name by which users choose it.
    needs : tuple of callables
        Conditions on the problem, see :mod:`manykernels.solvers._needs`.
    default_max_iter : int
        Outer iterations that are enough, unless a problem is hard.
    by_columns : bool
        Whether it reads kernels a few columns at a time, so that estimators need not store
        kernel matrices; `cache_bytes` is its memory for columns kept between iterations.
    on_demand : bool or None
        Whether kernels are to be computed when they are needed, for kernels that are too many to
        be stored; None leaves it to the estimator, by the memory there is, and False to nobody.
    """

    name: str
    needs: ClassVar[tuple[Need, ...]] = ()
    # Newton steps; most problems take fewer than ten.
    default_max_iter: int = 50
    by_columns: bool = False
    cache_bytes: int = 0
    on_demand: bool | None = False

    def __init_subclass__(cls, name: str | None = None, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if name is not None:
            cls.name = name
            SOLVERS[name] = cls

    def solve(
        self,
        loss: Loss,
        domain: Domain,
        *,
        tol: float = 1e-6,
        max_iter: int | None = None,
        start: Array | None = None,
        observer: Observer | None = None,
    ) -> Solution:
        """Minimise `loss` over `domain` to the relative gap `tol`.

        Parameters
        ----------
        loss : Loss
        domain : Domain
        tol : float, default=1e-6
            Relative gap at which to stop.
        max_iter : int, optional
            Limit on outer iterations; by default `default_max_iter`.
        start : ndarray of shape (n_kernels,), optional
            Weights to start from; some solvers ignore them.
        observer : callable, optional
            Called with the :class:`Progress` of every outer iteration; a true answer ends the run.

        Returns
        -------
        Solution

        Raises
        ------
        ValueError
            If the problem does not meet the needs of the solver.
        """
        refuse_unfit(self, Problem(loss.outline, domain, tol))
        loss = loss.within(domain.gauge).in_sweeps()
        run = Run(domain, tol, self.default_max_iter if max_iter is None else max_iter, observer)
        status = self._minimize(loss, domain, run, start)
        return run.solution(loss, status or "")

    @abstractmethod
    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> str | None:
        """Pass every outer iterate, at least one, to ``run.record`` until that returns True.

        Returns the status of the :class:`Solution`, if there is one.
        """


def as_solver(given: Any) -> Solver:
    """The solver of that name, or the given object as a solver.

    Any object with a method ``solve`` will do, which is called with `loss`, `domain`, `tol`,
    `max_iter` and `observer`. Attributes of :class:`Solver` that it lacks get their defaults.

    Examples
    --------
    >>> from manykernels.solvers import SIP, as_solver
    >>> as_solver("newton"), as_solver(SIP(eps=1e-4))
    (Newton(coarse_tol=0.001, on_demand=None), SIP(eps=0.0001))
    """
    if isinstance(given, Solver):
        return given
    if isinstance(given, str) and given in SOLVERS:
        return SOLVERS[given]()
    if isinstance(given, type) or not hasattr(given, "solve"):
        raise ValueError(
            f"solver must be one of {sorted(SOLVERS)} or an object with a method solve, "
            f"got {given!r}."
        )
    return _Foreign(given)


class _Foreign(Solver):
    """A solver whose ``solve`` is that of another object, which is no :class:`Solver`."""

    # Only Solver.solve calls it, and that is replaced.
    _minimize = None  # type: ignore[assignment]

    def __init__(self, given: Any) -> None:
        self.name = getattr(given, "name", type(given).__name__.lower())
        self.default_max_iter = getattr(given, "default_max_iter", Solver.default_max_iter)
        self.by_columns = getattr(given, "by_columns", Solver.by_columns)
        self.cache_bytes = getattr(given, "cache_bytes", Solver.cache_bytes)
        self.on_demand = getattr(given, "on_demand", Solver.on_demand)
        self.solve = given.solve  # type: ignore[method-assign]


def start_or_uniform(start: Array | None, loss: Loss, domain: Domain) -> Array:
    """The given start, or the point of the domain that treats all kernels alike."""
    return domain.start(loss.n_kernels) if start is None else start


def weights_are_free(loss: Loss, domain: Domain) -> bool:
    """Whether there are weights to learn: several kernels, and a start that may not be optimal."""
    return loss.n_kernels > 1 and not domain.start_is_optimal


def complaint(solver: Solver, problem: Problem) -> str | None:
    """Why `solver` refuses `problem`, by the first need that is not met; None if it takes it."""
    needs = (_one_budget, _stored_kernels, *solver.needs)
    return next(filter(None, (need(solver, problem) for need in needs)), None)


def _one_budget(solver: Solver, problem: Problem) -> str | None:
    """A regularisation that is learnt has a norm in common with all weights."""
    if problem.outline.learns_reg and problem.domain.n_blocks > 1:
        return "cannot learn reg or C with weights of several regions: pass a number"
    return None


def _stored_kernels(solver: Solver, problem: Problem) -> str | None:
    """Kernels that are computed on demand can be used where few of them have a weight."""
    if not problem.outline.on_demand:
        return None
    if solver.on_demand is False:
        return "needs all kernels in memory, and these are computed on demand"
    if isinstance(problem.domain, Simplex):
        return None
    return (
        "can compute kernels on demand at p=1 only, where few of them have a weight: pass p=1, or "
        "so few kernels that they fit into memory"
    )


def refuse_unfit(solver: Solver, problem: Problem) -> None:
    """Raise ValueError if `solver` cannot take `problem`, naming those that can."""
    missing = complaint(solver, problem)
    if missing is None:
        return
    able = [name for name, other in SOLVERS.items() if complaint(other(), problem) is None]
    able.sort(key=lambda name: (name != DEFAULT_SOLVER, name))
    ways = " or ".join(f"solver={name!r}" for name in able) or "no other solver"
    raise ValueError(f"solver={solver.name!r} {missing}; {ways} takes this problem.")


def refuse_indefinite(solution: Solution, domain: Domain, loss: Loss, names: list[str]) -> None:
    """Raise ValueError if a kernel is provably not positive semi-definite.

    A negative gain proves it, as the loss would rise with the weight of that kernel. A loss below
    its lower bound proves it of some kernel. Neither matters within the tolerance.
    """
    certificate, evaluation = solution.certificate, solution.evaluation
    allowed = certificate.tol * abs(certificate.primal)
    gains = loss.kernel_weights(evaluation.gains)
    lowest = gains + loss.kernel_weights(evaluation.gain_errors)
    # Each alone, and only those that are negative: there may be very many kernels.
    rises = np.zeros(len(lowest))
    for j in np.flatnonzero(lowest < 0.0):
        alone = np.zeros(len(lowest))
        alone[j] = -lowest[j]
        rises[j] = domain.support(alone)
    worst = int(np.argmax(rises))
    proved = bool(rises[worst] > allowed)
    if not proved and certificate.gap < -allowed - certificate.rounding:
        first = len(evaluation.gains) - len(names)
        kernels = (loss.kernel(first + j) for j in range(len(names)))
        worst = int(np.argmin([np.linalg.eigvalsh(kernel)[0] for kernel in kernels]))
        proved = True
    if proved:
        raise ValueError(
            f"Kernel {names[worst]!r} is not positive semi-definite (the objective changes "
            f"by {-gains[worst]:.3g} per unit of its weight), so the relative gap "
            f"{certificate.rel_gap:.2g} proves nothing. Build the stack with "
            'KernelStack.from_arrays(..., psd="clip") to remove the negative part, raise reg, or '
            "leave the kernel out."
        )
