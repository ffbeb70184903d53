"""
Solvers for discriminants
=========================

The algorithms of Ye et al. (2008) and Yan et al. (2010, 2012) are available as ``solver`` of
:class:`MKFDA`. They can also be used directly, with a loss and a domain of the weights. They find
the same weights and differ in the number of factorisations of a matrix of all samples.
"""

# %%
# The loss is created once. Each solver takes the loss and the domain of the weights.

import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKFDA, kernels_for
from manykernels.datasets import load_digit_views
from manykernels.domains import lp_domain
from manykernels.kernels import RBF
from manykernels.kernels.transforms import preparation
from manykernels.losses.square import SquareLoss
from manykernels.solvers import SIP, Analytic, Dual, Newton, tikhonov

views, y = load_digit_views(noise=3)
X, y = views[:300], y[:300]
kernel = RBF(gamma="median")
stack = preparation("multiplicative").fit_transform(kernels_for(X, kernel).fit(X)(X))
H = np.where((y < 5)[:, None], 1.0 / np.sum(y < 5), -1.0 / np.sum(y >= 5))
loss = SquareLoss(stack, H, reg=1.0)

# %%
# Cutting planes and closed-form updates converge slowly, especially if p is close to 1. Newton's
# method and the preconditioned dual problem (for p > 1) need a few factorisations.

SOLVERS = {"newton": Newton(), "analytic": Analytic(), "sip": SIP(), "dual": Dual()}
COLORS = {"newton": "#1f4e79", "analytic": "#c55a11", "sip": "#7f7f7f", "dual": "#548235"}
NORMS = [1.0, 1.125]

fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
print(f"{'p':<8}{'solver':<10}{'factorisations':>14}{'relative gap':>14}")
for ax, p in zip(axes, NORMS, strict=True):
    for name, solver in SOLVERS.items():
        if name == "dual" and p == 1.0:
            continue
        solution = solver.solve(loss, lp_domain(p), tol=1e-6, max_iter=100)
        print(f"{p:<8g}{name:<10}{solution.n_inner_solves:>14d}", end="")
        print(f"{solution.certificate.rel_gap:>14.1e}")
        costs = [step.n_inner_solves for step in solution.history]
        gaps = [max(step.certificate.rel_gap, 1e-9) for step in solution.history]
        ax.loglog(costs, gaps, ".-", color=COLORS[name], label=name, markersize=5)
    ax.axhline(1e-6, color="#d0d0d0", zorder=0)
    ax.set_title(f"p = {p:g}", loc="left", weight="bold")
    ax.set_xlabel("factorisations")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("relative gap")
axes[1].legend(frameon=False)
plt.show()

# %%
# A solver that does not support a problem raises an error before any computation. The error names
# the solvers that do.

try:
    MKFDA(kernel, p=2, solver="sdp").fit(X, y)
except ValueError as error:
    print(f"\n{error}")

# %%
# Instead of a bound on the norm of the weights, their norm can be penalised (Tikhonov form). With
# the right penalty ``mu`` both problems have the same solution. It is the dual norm of the gains,
# divided by ``2 * reg``.

domain = lp_domain(2.0)
ball = Newton().solve(loss, domain)
mu = domain.support(ball.evaluation.gains) / (2 * loss.reg)
priced = tikhonov(loss, 2.0, mu)
print(f"\nat the price mu = {mu:.3g} the norm of free weights is {priced.radius:.4f}")
