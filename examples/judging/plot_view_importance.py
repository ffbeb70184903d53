"""
Which view matters, with intervals
==================================

Kernel weights say how a model combines its views. They do not say which views matter: of two
views that tell the same, both can have a large weight and neither is needed.
:func:`~manykernels.view_importance` leaves views out, uses them alone, learns the weights again
from half-samples, and says how sure all of that is. Here it is asked about four views of a
handwritten digit, a copy of one of them, and noise.
"""

# %%
# Six views of 400 digits
# -----------------------
# The copy is the view of rows once more, in other units. A Gaussian kernel whose width is
# the median distance does not notice the units: the two kernels are the same.

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
# What each view is worth
# -----------------------
# The log loss of samples that are left out notices more than their accuracy. Fall: what is lost
# without the view, everything learnt again. Alone: the score of this view only. Weight and
# chosen: its share of the weights, and how often half-samples give it one.

model = MKFDA(RBF(gamma="median"), p=1, reg=3.0)
start = time.perf_counter()
importance = view_importance(model, views, y, scoring="neg_log_loss", n_resamples=20)
seconds = time.perf_counter() - start
print(importance)
print(f"{seconds:.1f} s")

# %%
# The rows and their copy share the weight, tell something alone, and can each be left out without
# a loss: the other one is still there. That is what equal views look like. Leaving out both
# tells what they are worth, and ``groups`` names sets of views to leave out together.

groups = {"rows and copy": ["rows", "copy"]}
pair = view_importance(model, views, y, groups=groups, scoring="neg_log_loss", n_resamples=0)
low, high = pair.fall_interval[0]
print(f"\nfall without rows and copy {pair.fall[0]:+.3f} [{low:+.3f}, {high:+.3f}]")

# %%
# The picture
# -----------
# Left: views whose interval is right of the line are needed. Middle: the line is the score of all
# views together. Right: a stroke for each half-sample.

fig = importance.plot()
path = Path("out", "view_importance.png").resolve()
path.parent.mkdir(exist_ok=True)
fig.savefig(path, dpi=150)
print(f"\nPicture: {path}")
