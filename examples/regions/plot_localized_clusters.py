"""
Weights for clusters or for single samples
==========================================

The gates of :class:`~manykernels.LocalizedSVC` are usually functions of the features. Two papers
by Yang et al. learn separate kernel weights for clusters of the training samples, or for each
training sample. This example shows when this improves the accuracy, and when it only lowers the
objective.
"""

# %%
# There are four clusters. In two of them the class depends on the first column, in the two
# diagonally opposite ones on the second. One weight per kernel cannot represent this, and a
# softmax gate, whose borders are straight, only partly. The gates depend on the position only.
# There are five data sets of 200 points.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from manykernels import MKSVC, LocalizedSVC
from manykernels.gating import PerCluster, PerSample, Softmax
from manykernels.kernels import Linear

KERNELS = [("first column", Linear().on([2])), ("second column", Linear().on([3]))]
# As in the papers: learn until the objective converges.
PAPER = {"features": [0, 1], "penalty": 0.0, "early_stopping": 0}
GATES = {
    "softmax": Softmax(**PAPER),
    "four clusters": PerCluster(n_clusters=4, **PAPER),
    "ten clusters": PerCluster(n_clusters=10, **PAPER),
    "single samples": PerSample(**PAPER),
}
REPEATS = 5


def four_clusters(n, rng):
    """Return positions in four clusters with two feature columns, and the class."""
    corner = rng.integers(2, size=(n, 2))
    columns = rng.uniform(-1, 1, (n, 2))
    place = 4.0 * corner + rng.normal(scale=0.4, size=(n, 2))
    return np.hstack([place, columns]), np.where(corner[:, 0] == corner[:, 1], *columns.T) > 0


def evaluate(repeat):
    """Return the objective and test accuracy of all gates on one data set, and the models."""
    rng = np.random.default_rng(repeat)
    (X, y), (X_test, y_test) = four_clusters(200, rng), four_clusters(3000, rng)
    plain = MKSVC(KERNELS, normalize=None).fit(X, y)
    rows, models = [(np.nan, plain.score(X_test, y_test))], {}
    for name, gate in GATES.items():
        model = LocalizedSVC(KERNELS, gating=clone(gate), normalize=None)
        models[name] = model.set_params(gating__random_state=repeat).fit(X, y)
        rows.append((model.objective_, model.score(X_test, y_test)))
    return rows, models, X


results = [evaluate(repeat) for repeat in range(REPEATS)]
medians = np.median([rows for rows, _, _ in results], axis=0)

print(
    f"{'kernel weights':<18}{'objective':>10}{'test accuracy':>15}   (medians of {REPEATS} draws)"
)
for name, (objective, accuracy) in zip(["one for all", *GATES], medians, strict=True):
    shown = "" if np.isnan(objective) else f"{objective:.1f}"
    print(f"{name:<18}{shown:>10}{accuracy:>15.1%}")

# %%
# The weights of clusters are correct almost everywhere, and too many clusters do little harm.
# Weights of single samples have the lowest objective. But they do not generalise: for new samples
# both kernels have the same weight, as in the paper, and the accuracy is that of one weight per
# kernel. (By default, a penalty and early stopping prevent such overfitting.)
#
# The colour of each training sample is the weight of the first kernel.

_, models, X = results[0]
fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, name in zip(axes, ["softmax", "four clusters", "single samples"], strict=True):
    model = models[name]
    # `gate` returns equal weights for new samples; those of training samples are parameters.
    gates = model.gating_coef_["outputs"].T if name == "single samples" else model.gate(X)
    dots = ax.scatter(*X[:, :2].T, c=gates[:, 0], cmap="coolwarm", vmin=0, vmax=1, s=14)
    ax.set_title(name, loc="left", weight="bold", fontsize=10)
    ax.set_xlabel("place")
    ax.spines[["top", "right"]].set_visible(False)
fig.colorbar(dots, ax=axes, label="weight of the first kernel")
plt.show()
