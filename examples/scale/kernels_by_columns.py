"""
Kernel matrices that do not fit into memory
===========================================

Ten kernels of 20 000 samples take 30 GiB. With ``solver="coordinate"`` kernel matrices are never
stored completely: columns are computed when a block of samples is visited, and some are kept in a
cache of bounded size. The certificate is as reliable as that of the other solvers. (This example
uses fewer samples; ``benchmarks/large.py`` has the full size.)
"""

# %%
# The cache may hold a tenth of the kernel matrices.

import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKFDA, rbf_grid
from manykernels.solvers import Coordinate

N_SAMPLES = 2000

rng = np.random.default_rng(0)
X = rng.standard_normal((2 * N_SAMPLES, 5))
y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] ** 2 > 1, "above", "below")
X_train, X_test, y_train, y_test = X[::2], X[1::2], y[::2], y[1::2]
kernels = rbf_grid([0.25, 1, 4, 16])

whole = 8 * len(kernels.kernels) * N_SAMPLES**2
solver = Coordinate(block_size=500, start_rows=300, cache_bytes=whole // 10)
model = MKFDA(kernels, reg=10.0, solver=solver, tol=1e-3).fit(X_train, y_train)

print(f"kernels {whole / 2**20:.0f} MiB, cache {solver.cache_bytes / 2**20:.0f} MiB")
print("sweep  relative gap")
for sweep, gap in enumerate(model.history_["rel_gap"], 1):
    print(f"{sweep:>5d}  {gap:.1e}")

# %%
# If the kernel matrices do fit into memory, Newton's method finds the same weights within the
# tolerances.

usual = MKFDA(kernels, reg=10.0).fit(X_train, y_train)
print(f"\n{'kernel':<12}{'by columns':>12}{'newton':>10}")
for name, ours, theirs in zip(model.kernel_names_, model.weights_, usual.weights_, strict=True):
    print(f"{name:<12}{ours:>12.3f}{theirs:>10.3f}")
print(f"accuracy{model.score(X_test, y_test):>16.1%}{usual.score(X_test, y_test):>10.1%}")

# %%
# Figure
# ------

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
gaps = model.history_["rel_gap"]
ax.semilogy(range(1, len(gaps) + 1), gaps, marker="o", color="#0072b2")
ax.axhline(model.tol, color="#b8b8b8", linewidth=1)
ax.set_xticks(range(1, len(gaps) + 1))
ax.set(xlabel="sweep", ylabel="relative gap", title="until the tolerance is reached")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
