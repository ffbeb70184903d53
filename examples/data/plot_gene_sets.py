"""
Gene sets: which pathways separate the classes
==============================================

A kernel for each of 120 overlapping gene sets, of which three differ between ill and healthy
patients. The weights of the kernels choose sets, and leaving sets out shows which are needed.
"""

# %%
# Expression of 2,000 genes
# -------------------------
# Each of the three active sets has an activity of its own in every patient, which is higher in
# ill patients and to which a part of its genes responds. One more set, the neighbour, shares 30 of
# its 40 genes with the first of them.

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from manykernels import MKFDA, kernels_of_sets, view_importance
from manykernels.display import WeightsDisplay

rng = np.random.default_rng(0)
genes = np.array([f"gene{number}" for number in range(2000)])
shuffled = rng.permutation(genes)
sets = {f"active {k + 1}": shuffled[40 * k : 40 * k + 40] for k in range(3)}
sets["neighbour"] = shuffled[[*range(30), *range(200, 210)]]
for k in range(116):
    sets[f"set {k:03d}"] = rng.choice(shuffled[120:], rng.integers(20, 80), replace=False)

ill = rng.random(300) < 0.5
X = pd.DataFrame(rng.normal(size=(300, 2000)), columns=genes)
for k in range(3):
    activity = rng.normal(1.6 * ill, 1.0)
    response = rng.normal(0.5, 0.3, 40) * (rng.random(40) < 0.6)
    X[sets[f"active {k + 1}"]] += np.outer(activity, response)

# %%
# Weights of the sets
# -------------------
# Genes in no set have a kernel of their own, named "rest".

kernels = kernels_of_sets(X, sets, rest=True)
model = MKFDA(kernels, p=1, reg=10.0).fit(X, ill)
n_used = np.count_nonzero(model.weights_)
print(f"{n_used} of {len(kernels.kernels)} kernels are sets with a weight")

# %%
# Importance of some sets
# -----------------------
# Weights do not measure importance. The neighbour has no weight, but it replaces the first active
# set if that is left out: the score hardly falls. It falls if both are left out.

views = {name: [name] for name in ("active 1", "active 2", "active 3", "neighbour", "set 000")}
importance = view_importance(model, X, ill, views=views, scoring="neg_log_loss", n_resamples=10)
print(importance)
both = {"active 1 and neighbour": ["active 1", "neighbour"]}
pair = view_importance(model, X, ill, views=both, scoring="neg_log_loss", n_resamples=0)
(low, high) = pair.fall_interval[0]
print(f"\nfall without both {pair.fall[0]:+.3f} [{low:+.3f}, {high:+.3f}]")

# %%
# Figure
# ------
# Left: the largest weights and the sum of the others. Right: fall of the score without each set.

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
WeightsDisplay.from_estimator(model, ax=left, top=6)
names = [*views, *both]
falls = np.append(importance.fall, pair.fall)
intervals = np.vstack([importance.fall_interval, pair.fall_interval])
right.plot(falls, names, "o")
right.hlines(names, *intervals.T)
right.axvline(0.0, color="grey", linewidth=0.8)
right.invert_yaxis()
right.set_title("Fall of the score without the set")
path = Path("out", "gene_sets.png").resolve()
path.parent.mkdir(exist_ok=True)
fig.savefig(path, dpi=150)
print(f"\nPicture: {path}")
