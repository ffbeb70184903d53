"""
Solvers for support vector machines
===================================

The algorithms of the papers on multiple kernel support vector machines are available as solvers of
the same problem. They reach the same objective and differ in the number of support vector machines
that have to be trained, each on one weighted sum of all kernels.
"""

# %%
# Digits 0 to 4 against 5 to 9, with nine views and 150 samples.

import time

import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKSVC, kernels_for
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF
from manykernels.solvers import SOLVERS

views, y = load_digit_views(noise=3)
X = views[:150]
stack = kernels_for(X, RBF(gamma="median")).fit(X)(X)
y = y[:150] < 5

# %%
# Some solvers support one norm only, the others both. The gap is computed by the same code for all
# solvers, so it can be compared. Three solvers do not train one machine after another:
# "interleaved" and "smo-mkl" update the weights while a machine is trained, and "qcqp" uses a
# conic solver. For these, compare the seconds instead of the number of solves.

NAMES = ["newton", "sip", "analytic", "reduced-gradient", "interleaved", "smo-mkl", "qcqp"]
ONLY = {"reduced-gradient": (1,), "smo-mkl": (2,), "qcqp": (1,)}
best = {}
solves = {1: {}, 2: {}}
print(
    f"{'p':<4}{'solver':<18}{'SVM solves':>12}{'relative gap':>14}{'objective':>14}{'seconds':>9}"
)
for p in (1, 2):
    for name in NAMES:
        if name not in SOLVERS or p not in ONLY.get(name, (1, 2)):
            continue
        start = time.perf_counter()
        model = MKSVC("precomputed", p=p, C=10.0, solver=name, tol=1e-4).fit(stack, y)
        seconds = time.perf_counter() - start
        bounds = model.certificate_
        if name not in ("interleaved", "smo-mkl", "qcqp"):
            solves[p][name] = model.n_inner_solves_
        best.setdefault(p, []).append((bounds.dual, bounds.primal, name, model.weights_))
        print(
            f"{p:<4}{name:<18}{model.n_inner_solves_:>12d}{bounds.rel_gap:>14.1e}"
            f"{bounds.primal:>14.6f}{seconds:>9.2f}"
        )

# %%
# Each certificate is an interval that contains the optimal objective, so all intervals must
# overlap.

for p, bounds in best.items():
    low, high = max(item[0] for item in bounds), min(item[1] for item in bounds)
    print(f"\np = {p}: all agree that the best objective is between {low:.4f} and {high:.4f}")
    assert low <= high * (1 + 1e-9)
    weights = np.array([item[3] for item in bounds])
    print(f"       no weight differs by more than {np.ptp(weights, axis=0).max():.4f}")

# %%
# A solver that does not support a problem raises an error before any computation.

try:
    MKSVC("precomputed", p=1, solver="smo-mkl").fit(stack, y)
except ValueError as error:
    print(f"\n{error}")

# %%
# Figure
# ------

fig, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
for ax, (p, counts) in zip(axes, solves.items(), strict=True):
    bars = ax.barh(list(counts), list(counts.values()), color="#0072b2")
    ax.bar_label(bars, padding=3)
    ax.set(title=f"machines trained at p = {p}", xlim=(0, 1.2 * max(counts.values())))
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
