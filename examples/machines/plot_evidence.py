"""
Weights without a norm: the evidence
====================================

A norm of the weights has to be chosen, and so has λ. ``p="evidence"`` needs neither: weights and λ
are those for which the targets are most likely under a Gaussian process, without folds. A rich
kernel fits everything, and the likelihood has a price for that, which a norm does not have.
"""

# %%
# Ten groups of four columns, of which the first two matter: one linearly, one by a sine. Every
# group has a linear and a narrow Gaussian kernel.

import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKRidge, MKRidgeCV
from manykernels.kernels import RBF, Linear

rng = np.random.default_rng(0)


def simulated(n_rows):
    """Return ten tables of four columns, and a target of the first two."""
    views = {f"group {k}": rng.normal(size=(n_rows, 4)) for k in range(10)}
    signal = views["group 0"].sum(axis=1) + 2.0 * np.sin(2.0 * views["group 1"][:, 0])
    return views, signal + rng.normal(size=n_rows)


(X, y), (X_new, y_new) = simulated(200), simulated(1000)
kernels = {}
for k in range(10):
    kernels[f"linear {k}"] = Linear().of(f"group {k}")
    kernels[f"rbf {k}"] = RBF(0.5).of(f"group {k}")

# %%
# The norms p = 1 and p = 2 with λ chosen by folds, and the evidence.

models = {
    "p = 1, λ by folds": MKRidgeCV(kernels, ps=[1]),
    "p = 2, λ by folds": MKRidgeCV(kernels, ps=[2]),
    "evidence": MKRidge(kernels, p="evidence"),
}
for name, model in models.items():
    model.fit(X, y)
    print(f"{name:20s} λ = {model.reg_:7.3f}, R² on new rows {model.score(X_new, y_new):.3f}")
print(models["evidence"].certificate_)

# %%
# The evidence leaves all but the kernels of the two groups at zero.

figure, axes = plt.subplots(1, 3, figsize=(9, 4.5), sharex=True, sharey=True, layout="constrained")
names = models["evidence"].kernel_names_
for ax, (name, model) in zip(axes, models.items(), strict=True):
    weights = model.weights_ / model.weights_.sum()
    ax.barh(names, weights, color=["#1f4e79" if w > 1e-3 else "#bbbbbb" for w in weights])
    ax.set(title=name, xlabel="share of the weights")
axes[0].invert_yaxis()
plt.show()
