"""
Counts: Poisson or squares?
===========================

Numbers of visits to a doctor are small, skewed and never negative. Their spread grows with their
mean. :class:`~manykernels.MKGLMCV` predicts the mean with the Poisson loss,
:class:`~manykernels.MKRidgeCV` with squared errors.
"""

# %%
# Two views are informative about the logarithm of the mean, the third is noise.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import d2_tweedie_score, r2_score

from manykernels import MKGLMCV, MKRidgeCV, Views

rng = np.random.default_rng(0)
tables = dict(zip(("clinic", "habits", "noise"), rng.standard_normal((3, 700, 4)), strict=True))
mean = np.exp(0.3 + 0.9 * tables["clinic"][:, 0] + 0.5 * np.sin(2 * tables["habits"][:, 0]))
visits = rng.poisson(mean)
X = Views(tables)
train, new = np.arange(200), np.arange(200, 700)

poisson = MKGLMCV(ps=[1, 2], regs=[0.1, 1, 10, 100]).fit(X.take(train), visits[train])
ridge = MKRidgeCV(ps=[1, 2]).fit(X.take(train), visits[train])
print(f"{np.mean(visits == 0):.0%} of the counts are 0, the largest is {visits.max()}")

# %%
# The predictions of ridge regression are partly negative, which is impossible for a mean of
# counts. D² is the share of the Poisson deviance that is explained; for its sake negative
# predictions are replaced by the smallest positive one.

predictions = {"MKGLMCV": poisson.predict(X.take(new)), "MKRidgeCV": ridge.predict(X.take(new))}
print(f"{'':<12}{'negative':>10}{'R²':>8}{'D²':>8}{'error of mean':>16}")
for name, values in predictions.items():
    positive = np.clip(values, values[values > 0].min(), None)
    explained = d2_tweedie_score(visits[new], positive, power=1)
    error = np.abs(values - mean[new]).mean()
    negative = np.mean(values < 0)
    scores = f"{r2_score(visits[new], values):>8.2f}{explained:>8.2f}{error:>16.2f}"
    print(f"{name:<12}{negative:>10.0%}{scores}")
print(f"D² of held-out training samples {poisson.left_out_score_:.2f}")

# %%
# Predicted and true means of new samples. On the dashed line predictions are right.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharex=True, sharey=True, layout="constrained")
for ax, (name, values) in zip(axes, predictions.items(), strict=True):
    ax.plot(mean[new], values, "o", ms=4, alpha=0.5, color="#2a6f97", mec="none")
    ax.plot([0, 12], [0, 12], color="#8a8a8a", lw=1, ls=(0, (4, 3)))
    ax.axhline(0, color="#1b1b1b", lw=0.8)
    ax.set(xlim=(0, 12), ylim=(-3, 12), xlabel="true mean")
    ax.set_title(name, loc="left", weight="bold", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("prediction")
plt.show()
