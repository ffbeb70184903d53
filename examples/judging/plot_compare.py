"""
Comparison of methods
=====================

:func:`~manykernels.compare` fits several methods on the same splits and tests whether their
differences are significant. Here learnt weights, the plain sum of all kernels, single views and a
pipeline of scikit-learn are compared on ten views of handwritten digits, four of them noise.
"""

# %%
# Methods
# -------
# All estimators that accept the same X can be compared; here X is a :class:`~manykernels.Views`
# object. The pipeline of scikit-learn begins with a step that concatenates the views. Models of a
# single view have a kernel of this view only.

from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from manykernels import MKFDA, MKSVC, Views, compare
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF

views, y = load_digit_views(noise=4)
rows = np.random.default_rng(0).permutation(len(y))[:250]
views, y = views[rows], y[rows]
kernel = RBF(gamma="median")


def side_by_side(views: Views) -> np.ndarray:
    return views.joined()


methods = {
    "MKFDA, p = 1": MKFDA(kernel, p=1),
    "MKFDA, p = 2": MKFDA(kernel, p=2),
    "MKSVC, p = 1": MKSVC(kernel, p=1),
    "plain sum": MKFDA(kernel, p=np.inf),
    "pixels alone": MKFDA([("pixels", kernel.of("pixels"))]),
    "fourier alone": MKFDA([("fourier", kernel.of("fourier"))]),
    "SVC, all columns": make_pipeline(FunctionTransformer(side_by_side), StandardScaler(), SVC()),
}

# %%
# The table
# ---------
# The splits are two repetitions of five folds. A star marks methods that differ significantly from
# the best, after Holm's correction. Here this is one of the single views only. The other methods
# differ by a few digits, and 250 digits are too few to decide which is better. The number of
# kernels does differ clearly: the sparse support vector machine uses about half of them.

comparison = compare(methods, views, y)
print(comparison)

# %%
# Other references
# ----------------
# The score of the method that turns out best is slightly optimistic. A reference that is chosen in
# advance, such as the plain sum, avoids this. ``tests`` returns the p-values of all pairs. With
# ``compare(..., path="cells")`` finished cells are stored in a folder, and the same call continues
# after an interruption.

print()
print(comparison.versus("plain sum"))
print()
print(comparison.tests(correction="holm"))

# %%
# Figure
# ------
# Each ring is one split, at the same height for all methods. The intervals of the means account
# for the overlap of the training sets.

ax = comparison.plot()
path = Path("out", "compare.png").resolve()
path.parent.mkdir(exist_ok=True)
ax.figure.savefig(path, dpi=150)
print(f"\nPicture: {path}")
