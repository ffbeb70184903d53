"""
Sparse or not? A simulation
===========================

The ℓ1 norm leaves kernels out. This is suitable if most of them are noise, and unsuitable if each
contains a little information that the others lack. Yan et al. (2012), section 3.1, show the second
case: each kernel belongs to one view, two overlapping classes in the plane, and its error rate
alone is more than 40 %. The views are independent, so the error decreases with the number of
views, but not for a method that uses only a few of them.

This is a small version. ``python -m benchmarks.simulation`` runs the full simulation and describes
the parameters that the paper does not specify.
"""

# %%
# Each view has a random mean and covariance for each class. There are 50 + 50 training samples,
# which occur in all views, as many to choose the regularisation, and as many to test.

import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKFDA, kernels_for
from manykernels.kernels import RBF
from manykernels.reporting.sparsity import effective_number

y = np.repeat([0, 1], 50)
NORMS = {"ℓ1": 1, "ℓ2": 2}
N_VIEWS = [5, 15, 30]
REGS = 4.0 ** np.arange(-3, 4, 2)
REPEATS = 8
VARIANCE = 2.4


def draw_view(rng):
    """Return points for training, for choosing λ and for testing, of shape (3, 100, 2)."""
    points = np.empty((3, 2, 50, 2))
    for k in range(2):
        angle = rng.uniform(0, np.pi)
        axes = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        deviations = np.sqrt(VARIANCE * rng.uniform(0.5, 1.5, 2))
        normal = rng.standard_normal((3, 50, 2)) * deviations
        points[:, k] = rng.uniform(1, 2, 2) + normal @ axes
    return points.reshape(3, 100, 2)


def evaluate(n_views, rng):
    """Return the error rate and weights of each norm, with λ chosen on a validation set."""
    points = [draw_view(rng) for _ in range(n_views)]
    tables = [{f"view{j}": view[i] for j, view in enumerate(points)} for i in range(3)]
    union = kernels_for(tables[0], RBF(gamma="median")).fit(tables[0])
    train, choose, test = union(tables[0]), *(union(new, tables[0]) for new in tables[1:])
    errors, weights = [], []
    for p in NORMS.values():
        models = [MKFDA("precomputed", p=p, reg=reg, normalize=None).fit(train, y) for reg in REGS]
        best = max(models, key=lambda model: (model.score(choose, y), model.reg))
        errors.append(1 - best.score(test, y))
        weights.append(best.weights_)
    return np.array(errors), np.array(weights)


# %%
# Both norms are applied to the same problems.

rng = np.random.default_rng(0)
errors = np.empty((len(N_VIEWS), REPEATS, 2))
examples = {}
print(f"{'kernels':<10}{'error, ℓ1':>12}{'error, ℓ2':>12}{'effective, ℓ1':>16}{'ℓ2':>7}")
for i, n_views in enumerate(N_VIEWS):
    numbers = []
    for repeat in range(REPEATS):
        errors[i, repeat], weights = evaluate(n_views, rng)
        examples.setdefault(n_views, weights)
        numbers.append(effective_number(weights))
    sparse, dense = errors[i].mean(axis=0)
    number = np.mean(numbers, axis=0)
    print(f"{n_views:<10}{sparse:>12.1%}{dense:>12.1%}{number[0]:>16.1f}{number[1]:>7.1f}")

# %%
# With few kernels the norms are about equally good. With many kernels, ℓ1 is worse, because it
# leaves out informative kernels.

COLORS = {"ℓ1": "#c55a11", "ℓ2": "#2a6f97"}
fig, axes = plt.subplots(1, 3, figsize=(10, 3.2), width_ratios=[1, 2, 2], layout="constrained")
for ax, n_views in zip(axes, (N_VIEWS[0], N_VIEWS[-1]), strict=False):
    for j, (name, color) in enumerate(COLORS.items()):
        place = np.arange(n_views) + 0.4 * j - 0.2
        ax.bar(place, examples[n_views][j], 0.4, color=color, label=name)
    ax.set_title(f"Weights, {n_views} kernels", loc="left", weight="bold", fontsize=10)
    ax.set_xticks([])
    ax.set_xlabel("kernel")
for j, (name, color) in enumerate(COLORS.items()):
    axes[2].plot(N_VIEWS, 100 * errors[..., j].mean(axis=1), "o-", color=color, label=name)
axes[2].set_title(f"Error, %, mean of {REPEATS} problems", loc="left", weight="bold", fontsize=10)
axes[2].set_xlabel("number of kernels")
axes[2].set_xticks(N_VIEWS)
axes[2].set_ylim(bottom=0)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
axes[2].legend(frameon=False)
plt.show()
