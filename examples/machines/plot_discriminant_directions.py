"""
Discriminant directions
=======================

:class:`~manykernels.MKFDA` is a classifier and a transformer: it projects samples on at most
``n_classes − 1`` directions, ordered by importance, in which the classes have unit variance.
"""

# %%
# Ten digits have nine directions. To evaluate the first k directions, we assign each sample to the
# nearest class mean in these directions.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import patheffects
from sklearn.metrics import euclidean_distances
from sklearn.model_selection import train_test_split

from manykernels import MKFDA
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF

views, y = load_digit_views()
X_train, X_test, y_train, y_test = train_test_split(
    views, y, train_size=500, stratify=y, random_state=0
)
model = MKFDA(RBF(gamma="median"), reg=0.1).fit(X_train, y_train)
Z = model.transform(X_test)

print("directions  held-out accuracy")
for k in range(1, Z.shape[1] + 1):
    nearest = euclidean_distances(Z[:, :k], model.means_[:, :k]).argmin(axis=1)
    print(f"{k:>10d}  {np.mean(model.classes_[nearest] == y_test):>17.1%}")

# %%
# The first two directions separate some of the digits, the next two separate others. Each numeral
# is drawn at the mean of its class, computed from the training images.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
colors = plt.get_cmap("tab10")(np.searchsorted(model.classes_, y_test))
outline = [patheffects.withStroke(linewidth=3, foreground="white")]
for ax, first in zip(axes, (0, 2), strict=True):
    pair = slice(first, first + 2)
    ax.scatter(*Z[:, pair].T, c=colors, s=10, alpha=0.5, linewidths=0)
    for digit, (x1, x2), color in zip(
        model.classes_, model.means_[:, pair], plt.get_cmap("tab10").colors, strict=True
    ):
        numeral = ax.text(x1, x2, digit, ha="center", va="center", color=color)
        numeral.set(fontsize=17, weight="bold", path_effects=outline)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xlabel(f"direction {first + 1}")
    ax.set_ylabel(f"direction {first + 2}")
    ax.spines[["top", "right"]].set_visible(False)
fig.suptitle("Held-out digits, in units of the spread within classes", x=0.01, ha="left")
plt.show()
