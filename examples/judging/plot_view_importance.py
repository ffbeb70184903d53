"""
Importance of views, with intervals
===================================

Kernel weights show how a model combines its views, but not which views matter: if two views
contain the same information, both can have a large weight although neither is needed.
:func:`~manykernels.view_importance` leaves views out, uses them alone, and learns the weights
again from half-samples. It returns confidence intervals for all results. This example uses four
views of handwritten digits, a copy of one of them, and noise.
"""

# %%
# Six views of 400 digits
# -----------------------
# The copy is the view ``rows`` in other units. The width of the Gaussian kernel is the median
# distance, so the units have no effect: the two kernels are equal.

import time
from pathlib import Path

import numpy as np

from manykernels import MKFDA, view_importance
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF

views, y = load_digit_views(noise=1)
rows = np.random.default_rng(0).permutation(len(y))[:400]
chosen = ["rows", "columns", "gradients", "fourier", "noise1"]
views = {name: views[name][rows] for name in chosen}
y = y[rows]
views["copy"] = 100 * views["rows"]

# %%
# Importance of each view
# -----------------------
# The log loss of left-out samples is more sensitive than their accuracy. *fall without*: the
# decrease of the score without the view, with all parameters learnt again. *alone*: the score of
# this view only. *weight* and *chosen*: its share of the weights, and the share of the
# half-samples in which its weight is not zero.

model = MKFDA(RBF(gamma="median"), p=1, reg=3.0)
start = time.perf_counter()
importance = view_importance(model, views, y, scoring="neg_log_loss", n_resamples=20)
seconds = time.perf_counter() - start
print(importance)
print(f"{seconds:.1f} s")

# %%
# ``rows`` and its copy share the weight and are informative alone. Each can be left out without a
# loss as long as the other is present. This is typical for redundant views. To measure their
# common importance, leave out both: ``views`` names sets of kernels to leave out together.

pairs = {"rows and copy": ["rows", "copy"]}
pair = view_importance(model, views, y, views=pairs, scoring="neg_log_loss", n_resamples=0)
low, high = pair.fall_interval[0]
print(f"\nfall without rows and copy {pair.fall[0]:+.3f} [{low:+.3f}, {high:+.3f}]")

# %%
# Figure
# ------
# Left: views whose interval is right of the line are needed. Middle: the line is the score of all
# views together. Right: each stroke is one half-sample.

fig = importance.plot()
path = Path("out", "view_importance.png").resolve()
path.parent.mkdir(exist_ok=True)
fig.savefig(path, dpi=150)
print(f"\nPicture: {path}")
