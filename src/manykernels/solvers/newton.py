"""Outer Newton: second-order steps in weight space, the default solver.

Each iteration (:mod:`~manykernels.solvers.search`) minimises a quadratic model of F over the whole
weight domain (:mod:`~manykernels.solvers.model`), an n-dimensional conic program
(:mod:`~manykernels.solvers.quadratic`), and has other steps for where F rejects that one. The gap
is tested before the Hessian is computed, so the last iteration needs none.

The start is the minimiser of a coarse loss where there is one. Many kernels on a simplex, where
most weights are zero, are solved on active sets (:mod:`~manykernels.solvers.active_set`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..domains import Array, Domain, Simplex
from ..losses.base import Loss
from .active_set import MANY_KERNELS, minimize_on_active_sets
from .base import Solver, start_or_uniform, weights_are_free
from .certificate import NO_BOUND
from .cuts import Cuts
from .run import Run
from .search import Search

# Cuts kept, enough for the trials of several iterations. Each is a row of the conic program and
# holds dual variables. Measured as in `model`: 20 to 200 alike.
_MOST_CUTS = 60


@dataclass(frozen=True)
class Newton(Solver, name="newton"):
    """Outer Newton solver.

    Parameters
    ----------
    coarse_tol : float, default=1e-3
        Relative gap to which the coarse problem is solved for the start.
    on_demand : bool, optional
        Whether an estimator computes kernels when they are needed instead of storing them, at
        p = 1: a few at a time, all of them once per round. By default it does so if they would
        take more than half of the memory that is available, and says so in a warning.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import MKFDA, rbf_grid
    >>> model = MKFDA(rbf_grid([0.5, 2, 8]), p=1, solver="newton").fit(*load_iris(return_X_y=True))
    >>> model.certificate_.converged, model.n_inner_solves_ < 10
    (True, True)
    """

    coarse_tol: float = 1e-3
    on_demand: bool | None = None

    def _minimize(self, loss: Loss, domain: Domain, run: Run, start: Array | None) -> None:
        many = loss.n_kernels >= MANY_KERNELS or loss.outline.on_demand
        if isinstance(domain, Simplex) and many:
            minimize_on_active_sets(self.descend, loss, domain, run, start)
            return
        coarse = loss.coarse() if start is None and weights_are_free(loss, domain) else None
        if coarse is not None:
            start = self.solve(coarse, domain, tol=self.coarse_tol, max_iter=run.max_iter).weights
        self.descend(loss, domain, run, start_or_uniform(start, loss, domain))

    def descend(self, loss: Loss, domain: Domain, run: Run, start: Array) -> None:
        """Newton steps on all kernels of `loss`."""
        point = loss.evaluate(start)
        cuts = Cuts(_MOST_CUTS)
        n_solves, scale, bound = 1, 1.0, NO_BOUND
        while not run.record(point, n_solves, bound):
            cuts.add(point)
            search = Search(loss, domain, point, cuts, run.tol, scale)
            found = search.run()
            n_solves, scale, bound = search.n_solves, search.next_scale, search.bound
            if found is None:
                # The bound that the trials have proved still counts.
                run.record(point, n_solves, bound)
                break
            point = found
