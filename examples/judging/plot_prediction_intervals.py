"""
Prediction intervals
====================

A predicted number is of little use without its uncertainty. ``predict_interval`` returns intervals
that contain the targets of new samples with a given probability. Their widths are quantiles of the
errors at training samples that were left out, so that errors need not be normal.
"""

# %%
# One column, and errors that are skewed: large ones are always positive.

import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKRidge
from manykernels.kernels import RBF

rng = np.random.default_rng(0)


def samples(n):
    x = np.sort(rng.uniform(0, 10, n))
    return x[:, None], np.sin(x) + 0.4 * rng.exponential(size=n)


X, y = samples(150)
model = MKRidge(RBF("median", 0.3), reg=1.0).fit(X, y)
low, high = model.predict_interval(X, coverage=0.9).T

fig, ax = plt.subplots(figsize=(7, 4))
ax.fill_between(X[:, 0], low, high, alpha=0.25, label="90 % of new samples")
ax.plot(X[:, 0], model.predict(X), label="prediction")
ax.plot(X[:, 0], y, ".", color="black", markersize=4, label="training samples")
ax.set(xlabel="x", ylabel="y")
ax.legend(frameon=False)

# %%
# The interval is not symmetric around the prediction, as the errors are not.
#
# Coverage
# --------
# How many new targets are in the intervals? One training set has intervals that are a little too
# narrow or too wide; the mean over training sets is what the coverage states.

for coverage in (0.5, 0.8, 0.9, 0.95):
    shares = []
    for _ in range(50):
        X, y = samples(100)
        new, truth = samples(500)
        low, high = model.fit(X, y).predict_interval(new, coverage).T
        shares.append(np.mean((low <= truth) & (truth <= high)))
    print(f"{coverage:.0%}: {np.mean(shares):.1%} of new targets")

# %%
# Several samples of one patient
# ------------------------------
# Errors of the same patient are alike. Without ``groups``, a sample is left out while others of
# its patient are learnt from, and intervals are too narrow for new patients.


def patients(n, size=5):
    x, own = rng.uniform(0, 10, n), rng.normal(scale=0.7, size=n)
    X = np.repeat(x, size)[:, None] + 0.05 * rng.normal(size=(n * size, 1))
    return X, np.sin(X[:, 0]) + np.repeat(own, size) + 0.1 * rng.normal(size=n * size)


for title, known in (("without groups", False), ("with groups", True)):
    shares = []
    for _ in range(30):
        X, y = patients(40)
        new, truth = patients(100)
        groups = np.repeat(np.arange(40), 5) if known else None
        narrow = MKRidge(RBF("median", 0.1), reg=0.01).fit(X, y, groups=groups)
        low, high = narrow.predict_interval(new, 0.9).T
        shares.append(np.mean((low <= truth) & (truth <= high)))
    print(f"{title}: {np.mean(shares):.1%} of the targets of new patients")
