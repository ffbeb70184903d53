"""
One support vector problem, all solvers
=======================================

The programs of the papers on multiple kernel support vector machines are here as solvers of one
problem. They arrive at the same objective; what differs is the number of machines that have to be
trained on the way. A machine is one support vector machine on one weighted sum of all kernels.
"""

# %%
# Small digits against large ones, nine views, 150 samples.

import time

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
# Some solvers work at one norm only, the others take both. The gap is computed in the same way for
# all, and by none of them, so that it can be compared. Three do not train one machine after the
# other: "interleaved" and "smo-mkl" move the weights while a machine is being trained, "qcqp"
# hands everything to a conic solver. There the seconds tell more than the count.

NAMES = ["newton", "sip", "analytic", "reduced-gradient", "interleaved", "smo-mkl", "qcqp"]
ONLY = {"reduced-gradient": (1,), "smo-mkl": (2,), "qcqp": (1,)}
best = {}
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
        best.setdefault(p, []).append((bounds.dual, bounds.primal, name, model.weights_))
        print(
            f"{p:<4}{name:<18}{model.n_inner_solves_:>12d}{bounds.rel_gap:>14.1e}"
            f"{bounds.primal:>14.6f}{seconds:>9.2f}"
        )

# %%
# Every certificate is an interval that holds the best objective, so they all have to overlap.

for p, bounds in best.items():
    low, high = max(item[0] for item in bounds), min(item[1] for item in bounds)
    print(f"\np = {p}: all agree that the best objective is between {low:.4f} and {high:.4f}")
    assert low <= high * (1 + 1e-9)
    weights = np.array([item[3] for item in bounds])
    print(f"       no weight differs by more than {np.ptp(weights, axis=0).max():.4f}")

# %%
# A solver that cannot take a problem refuses before any work.

try:
    MKSVC("precomputed", p=1, solver="smo-mkl").fit(stack, y)
except ValueError as error:
    print(f"\n{error}")
