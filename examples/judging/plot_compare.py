"""
Methods side by side
====================

Which method is best here, and is the difference more than chance?
:func:`~manykernels.compare` fits all of them on the same splits and tests them in pairs. Here
learnt weights, the plain sum of all kernels, single views and a pipeline of scikit-learn are
compared on ten views of handwritten digits, four of them noise.
"""

# %%
# Methods
# -------
# Whatever takes the same X can be compared: here :class:`~manykernels.Views`. A pipeline of
# scikit-learn begins with a step that puts the views side by side, and a single view is learnt
# with a kernel of this view only.

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
# Splits are five folds, twice. A star marks methods that differ from the best by more than chance
# explains, after Holm's correction. Here that is one of the single views only. The others differ
# by a few digits, and 250 of them are too few to tell which is better. What is plain is who needs
# how many kernels: the sparse machine does with about half of them.

comparison = compare(methods, views, y)
print(comparison)

# %%
# Other questions
# ---------------
# A method that happens to be best looks better than it is. A reference that is named before, such
# as the plain sum, has no such luck. ``tests`` has the p-values of all pairs. With
# ``compare(..., path="cells")`` every finished cell is kept in a folder, and the same call goes on
# after an interruption.

print()
print(comparison.versus("plain sum"))
print()
print(comparison.tests(correction="holm"))

# %%
# The picture
# -----------
# A ring for each split, the same split at the same height in every line; means with intervals
# that count that training sets overlap.

ax = comparison.plot()
path = Path("out", "compare.png").resolve()
path.parent.mkdir(exist_ok=True)
ax.figure.savefig(path, dpi=150)
print(f"\nPicture: {path}")
