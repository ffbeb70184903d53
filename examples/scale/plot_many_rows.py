"""
Many rows with explicit features
================================

Kernel matrices are feasible up to some ten thousand samples. With ``approximation=Nystrom(n)``
each kernel is approximated by its values at n landmarks, which are drawn from the samples. A fit
reads the rows twice, block by block, and does not store them. :class:`MKFDA` returns weights and a
certificate as usual; ``approximation_errors_`` contains the errors of the approximated kernels.
"""

# %%
# The rows are not stored: Dask generates them chunk by chunk when they are needed, as it would
# read them from files. Two views are informative about the classes, and a third is noise.

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKFDA, Nystrom
from manykernels.kernels import RBF

VIEWS = {"wave": [0, 1], "sign": [2], "noise": [3, 4]}


def rows_of(n_rows, seed=0):
    X = da.random.default_rng(seed).normal(size=(n_rows, 5), chunks=(5000, 5))
    height = da.sin(4.0 * X[:, 0]) * da.cos(4.0 * X[:, 1]) + 0.5 * X[:, 2]
    return X, da.where(height > 0.0, "high", "low")


kernels = {name: RBF(gamma=4.0).on(columns) for name, columns in VIEWS.items()}
X_new, y_new = (np.asarray(part) for part in rows_of(3000, seed=1))

# %%
# The seed is part of the arrays, so each pass generates the same rows.

model = MKFDA(kernels, p=1, approximation=Nystrom(200, random_state=0))
model.fit(*rows_of(100_000))
print(f"100,000 rows: accuracy {model.score(X_new, y_new):.1%}")
print(model.certificate_)
for name, weight, error in zip(
    model.kernel_names_, model.weights_, model.approximation_errors_, strict=True
):
    print(f"  {name:6s} weight {weight:.2f}, error of the approximation {error:.3f}")

# %%
# Accuracy for several numbers of landmarks and rows. More landmarks improve the approximation of
# the kernels; more rows improve the model, up to the limit of the kernels.

n_landmarks = [25, 50, 100, 200]
n_rows = [5_000, 50_000]
scores = {}
for rows in n_rows:
    for n in n_landmarks:
        fitted = MKFDA(kernels, p=1, approximation=Nystrom(n, random_state=0))
        scores[rows, n] = fitted.fit(*rows_of(rows)).score(X_new, y_new)

fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
colours = ["#c55a11", "#08519c"]
for rows, colour in zip(n_rows, colours, strict=True):
    curve = [100 * scores[rows, n] for n in n_landmarks]
    ax.plot(n_landmarks, curve, "o-", color=colour)
    ax.annotate(
        f"{rows:,} rows", (n_landmarks[-1], curve[-1]), xytext=(8, 0), textcoords="offset points",
        va="center", color=colour,
    )  # fmt: skip
ax.set_xscale("log", base=2)
ax.set_xticks(n_landmarks, [str(n) for n in n_landmarks])
ax.set_xlim(right=2.2 * n_landmarks[-1])
ax.set_xlabel("landmarks of each kernel")
ax.set_ylabel("accuracy of new rows, %")
ax.spines[["top", "right"]].set_visible(False)
ax.set_title("Landmarks and rows", loc="left", weight="bold")
plt.show()
