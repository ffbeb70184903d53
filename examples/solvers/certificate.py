"""
Recomputing a certificate
=========================

Every fit returns a certificate: no weights have an objective below ``certificate_.dual``. This
example recomputes this bound from the weights.
"""

# %%
# A loose tolerance is used on purpose, to get a visible gap.

import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKFDA, kernels_for
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF
from manykernels.kernels.transforms import preparation

P, REG = 1.5, 1.0

views, y = load_digit_views(noise=1)
X, y = views[:500], y[:500]
kernel = RBF(gamma="median")
model = MKFDA(kernel, p=P, reg=REG, tol=1e-2).fit(X, y)

print("factorisations    objective  relative gap")
for n, objective, rel_gap in zip(
    model.history_["n_inner_solves"],
    model.history_["objective"],
    model.history_["rel_gap"],
    strict=True,
):
    print(f"{n:>14d}  {objective:>11.6f}  {rel_gap:>12.2e}")

# %%
# The weights refer to centred and normalised kernels ``K_j``. With the targets H, for which least
# squares is equivalent to Fisher's discriminant, and ``A = I + Σ_j β_j K_j / λ``, the objective
# and its negative derivatives are
#
# .. math:: F = \mathrm{tr}(H^\top A^{-1} H), \qquad
#           g_j = \tfrac{1}{\lambda} \mathrm{tr}(U^\top K_j U), \quad U = A^{-1} H.
#
# F is convex, so no b in the weight domain lowers it by more than ``(b − β)·g``, and the largest
# of these is ``σ(g) − β·g`` with ``σ(g) = ‖g‖_q``, 1/p + 1/q = 1.

stack = preparation("multiplicative").fit_transform(kernels_for(X, kernel).fit(X)(X))
kernels = [stack.kernel(name) for name in stack.names]

counts = np.bincount(y)
m = counts.sum()
H = np.where(y[:, None] == np.arange(10), np.sqrt(m / counts), 0.0) - np.sqrt(counts / m)


def objective_and_gap(weights):
    """Return F at `weights` and an upper bound on its distance from the minimum."""
    A = np.eye(m) + sum(w * K for w, K in zip(weights, kernels, strict=True)) / REG
    U = np.linalg.solve(A, H)
    gains = np.array([np.sum(U * (K @ U)) for K in kernels]) / REG
    q = P / (P - 1)
    return np.sum(H * U), np.linalg.norm(gains, q) - weights @ gains


objective, gap = objective_and_gap(model.weights_)
certificate = model.certificate_
print(f"\nby hand:      objective {objective:.10f}, gap {gap:.10f}")
print(f"certificate:  objective {certificate.primal:.10f}, gap {certificate.gap:.10f}")
assert abs(objective - certificate.primal) <= 1e-8 * certificate.primal
assert abs(gap - certificate.gap) <= 1e-8 * certificate.primal

# %%
# The bound holds for all weights, also far from the optimum. Here it is computed for equal weights
# and compared with the objective of a fit with a small tolerance:

best = MKFDA(kernel, p=P, reg=REG, tol=1e-10).fit(X, y).certificate_.primal
equal = np.full(len(kernels), len(kernels) ** (-1 / P))
objective, gap = objective_and_gap(equal)
print(f"\nequal weights are {objective - best:.6f} above the best; the bound says {gap:.6f}")
assert objective - best <= gap

# %%
# Figure
# ------
# From equal weights to the learnt ones: the bound is never below the true distance.

shares = np.linspace(0.0, 1.0, 21)
pairs = [objective_and_gap((1 - t) * equal + t * model.weights_) for t in shares]
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(shares, [gap for _, gap in pairs], color="#d55e00", label="bound")
ax.plot(
    shares, [objective - best for objective, _ in pairs], color="#0072b2", label="true distance"
)
ax.set(xlabel="from equal weights to learnt weights", ylabel="objective above the optimum")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
