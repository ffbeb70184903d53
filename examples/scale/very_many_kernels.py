"""
Thousands of kernels, computed on demand
========================================

To find out which columns interact, and at which kernel width, one can use kernels on thousands of
subsets of columns, each with several widths. At ``p=1`` few of them get a weight. The others are
needed only to compute their gains, which prove that their weight is zero. So they are computed
when needed and not stored. (This example has some thousands of kernels on 150 samples;
``benchmarks/kernels_on_demand.py`` has up to a hundred thousand on 208 samples.)
"""

# %%
# :class:`RBFSubsets` describes many kernels by a few arrays. The class depends on two pairs of
# columns out of twelve.

import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKFDA
from manykernels.kernels import RBFSubsets
from manykernels.solvers import Newton

N_SUBSETS = 1000

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (300, 12))
y = np.where(X[:, 2] * X[:, 5] + X[:, 8] * X[:, 9] > 0, "agree", "differ")
X_train, X_test, y_train, y_test = X[::2], X[1::2], y[::2], y[1::2]
kernels = RBFSubsets(N_SUBSETS, widths=[0.5, 1, 2], sizes=(1, 3))

# %%
# By default, kernels are stored if they take less than half of the available memory;
# ``on_demand=True`` never stores them.

solver = Newton(on_demand=True)
model = MKFDA(kernels, p=1, reg=10.0, tol=1e-3, solver=solver).fit(X_train, y_train)

n_kernels = len(model.weights_)
gigabytes = 8 * n_kernels * len(X_train) ** 2 / 1e9
print(f"{n_kernels} kernels, whose matrices would take {gigabytes:.2f} GB")
print("sweep  relative gap over all kernels")
for sweep, gap in enumerate(model.history_["rel_gap"], 1):
    print(f"{sweep:>5d}  {gap:.1e}")

# %%
# The subsets of columns with the largest weights; the true pairs are columns 2 and 5, and 8 and 9.

used = np.flatnonzero(model.weights_)
print(f"\n{len(used)} kernels have a weight")
for j in used[np.argsort(-model.weights_[used])][:6]:
    name, kernel = model.union_.kernels_[j]
    print(f"{model.weights_[j]:.3f}  {name:<20} columns {kernel.columns}")
print(f"accuracy {model.score(X_test, y_test):.1%}")

# %%
# Figure
# ------

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
largest = used[np.argsort(model.weights_[used])][-8:]
columns = [", ".join(map(str, model.union_.kernels_[j][1].columns)) for j in largest]
ax.barh(range(len(largest)), model.weights_[largest], color="#0072b2")
ax.set_yticks(range(len(largest)), columns)
ax.set(xlabel="weight", ylabel="columns", title="kernels with the largest weights")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
