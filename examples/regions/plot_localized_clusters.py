"""
Weights of regions, clusters or single samples
==============================================

A gate of :class:`~manykernels.LocalizedSVC` divides the space by a formula. Two papers by Yang et
al. learn kernel weights without one: for clusters of the training samples, or for each training
sample. Here is when that helps, and when the objective only looks as if it did.
"""

# %%
# Four clusters. In two of them the first column knows the class, in the two across the second.
# One weight for each kernel cannot follow that, and a softmax gate, whose borders are straight,
# only in part. The gates look at the place alone. Five draws of 200 points each.

import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKSVC, LocalizedSVC
from manykernels.gating import PerCluster
from manykernels.kernels import Linear

KERNELS = [("first column", Linear().on([2])), ("second column", Linear().on([3]))]
GATES = {
    "softmax": "softmax",
    "four clusters": PerCluster(n_clusters=4),
    "ten clusters": PerCluster(n_clusters=10),
    "single samples": "instance",
}
REPEATS = 5


def four_clusters(n, rng):
    """Places in four clusters, two columns, and the class that one of the columns knows."""
    corner = rng.integers(2, size=(n, 2))
    columns = rng.uniform(-1, 1, (n, 2))
    place = 4.0 * corner + rng.normal(scale=0.4, size=(n, 2))
    return np.hstack([place, columns]), np.where(corner[:, 0] == corner[:, 1], *columns.T) > 0


def play(repeat):
    """Objective and test accuracy of all gates on one draw, and the models."""
    rng = np.random.default_rng(repeat)
    (X, y), (X_test, y_test) = four_clusters(200, rng), four_clusters(3000, rng)
    plain = MKSVC(KERNELS, normalize=None).fit(X, y)
    rows, models = [(np.nan, plain.score(X_test, y_test))], {}
    for name, gate in GATES.items():
        model = LocalizedSVC(
            KERNELS,
            gating=gate,
            gating_features=[0, 1],
            normalize=None,
            random_state=repeat,
            # Until the objective stops changing, as in the papers.
            penalty=0.0,
            early_stopping=False,
        )
        models[name] = model.fit(X, y)
        rows.append((model.objective_, model.score(X_test, y_test)))
    return rows, models, X


played = [play(repeat) for repeat in range(REPEATS)]
medians = np.median([rows for rows, _, _ in played], axis=0)

print(
    f"{'kernel weights':<18}{'objective':>10}{'test accuracy':>15}   (medians of {REPEATS} draws)"
)
for name, (objective, accuracy) in zip(["one for all", *GATES], medians, strict=True):
    shown = "" if np.isnan(objective) else f"{objective:.1f}"
    print(f"{name:<18}{shown:>10}{accuracy:>15.1%}")

# %%
# Weights of clusters are right almost everywhere, and more clusters than there are do little
# harm. Weights of single samples have the lowest objective of all. But what was learnt of a
# sample says nothing of its neighbours: in new samples both kernels count the same, as in the
# paper, and the accuracy is that of one weight for all. (By default a penalty and held-out samples
# keep gates from going that far.)
#
# The colour of a training sample is the weight of the first kernel.

_, models, X = played[0]
fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, name in zip(axes, ["softmax", "four clusters", "single samples"], strict=True):
    model = models[name]
    # New samples have equal weights; those of the training samples are the gate's parameters.
    own = model.gating_coef_["outputs"].T if name == "single samples" else model.gate(X)
    dots = ax.scatter(*X[:, :2].T, c=own[:, 0], cmap="coolwarm", vmin=0, vmax=1, s=14)
    ax.set_title(name, loc="left", weight="bold", fontsize=10)
    ax.set_xlabel("place")
    ax.spines[["top", "right"]].set_visible(False)
fig.colorbar(dots, ax=axes, label="weight of the first kernel")
plt.show()
