"""
A Gaussian kernel that learns which columns matter
==================================================

In Friedman's function five columns matter; here there are twenty-five more. A Gaussian kernel with
one width for all columns compares rows mostly by columns that do not matter.
:class:`~manykernels.kernels.RelevanceRBF` learns a scale for every column from the targets.
"""

# %%
# The kernel is one of the default kernels of :class:`~manykernels.MKRidgeCV`; ``kernels_for``
# returns the others. Every split of the cross-validation learns the scales anew, from its training
# rows: the score of left-out rows is that of new rows.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from manykernels import MKRidgeCV, kernels_for
from manykernels.kernels import RelevanceRBF

N_TRAIN = 200
X, y = make_friedman1(1200, n_features=30, noise=1.0, random_state=0)
train, test = slice(N_TRAIN), slice(N_TRAIN, None)

for name, kernels in {"without": kernels_for(X[train]), "with RelevanceRBF": None}.items():
    model = MKRidgeCV(kernels).fit(X[train], y[train])
    print(
        f"{name:<18} R² of left-out rows {model.left_out_score_:.2f}, "
        f"of new rows {model.score(X[test], y[test]):.2f}"
    )

# %%
# Scales on a logarithmic axis: the columns 3 and 4 have linear effects, for which a wide Gaussian
# is enough. If the targets are shuffled, nothing can be learnt. Without a penalty scales differ
# all the same; the penalty that makes the targets most likely keeps them equal.

shuffled = np.random.default_rng(0).permutation(y[train])
fits = {
    "targets": RelevanceRBF().fit(X[train], y[train]),
    "shuffled targets, no penalty": RelevanceRBF(penalty=0.0).fit(X[train], shuffled),
    "shuffled targets": RelevanceRBF().fit(X[train], shuffled),
}

fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharey=True)
colors = np.where(np.arange(30) < 5, "#1f4e79", "#b0b0b0")
for ax, (title, kernel) in zip(axes, fits.items(), strict=True):
    ax.scatter(np.arange(30), kernel.scales_, c=colors, s=18)
    ax.set_yscale("log")
    ax.set_title(title, loc="left", weight="bold", fontsize=10)
    ax.set_xlabel("column")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("scale")
plt.show()
