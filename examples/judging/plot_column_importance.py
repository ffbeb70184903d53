"""
Columns that matter inside a view
=================================

:func:`~manykernels.view_importance` tells which views matter, and
:func:`~manykernels.column_importance` which columns of a view do. Their number may be far larger
than that of the samples, and many of them may be correlated with columns that matter. This example
has 300 samples in two views: 500 genes, which have linear effects, and ten measurements with
curved ones.
"""

# %%
# Two views
# ---------
# Neighbouring genes are correlated (0.7). Four of 500 matter, and three of the ten measurements.

import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKRidge, column_importance
from manykernels.kernels import RBF, Linear

rng = np.random.default_rng(0)
genes = rng.standard_normal((300, 500))
for j in range(1, 500):
    genes[:, j] = 0.7 * genes[:, j - 1] + np.sqrt(1 - 0.7**2) * genes[:, j]
clinic = rng.standard_normal((300, 10))
y = genes[:, [50, 150, 250, 350]] @ [1.0, -1.0, 1.0, 1.0]
y += clinic[:, 0] ** 2 + 2 * np.sin(2 * clinic[:, 1]) + clinic[:, 2]
y += 0.7 * rng.standard_normal(300)
views = {"genes": genes, "clinic": clinic}
model = MKRidge({"genes": Linear(), "clinic": RBF("median")}, reg=0.3)

# %%
# Genes
# -----
# The kernel of the genes is linear. The importance is the effect of a standard deviation of the
# gene on y if all other columns stay the same. It is not shrunk as the coefficients of a ridge
# regression are, so that its interval can be read as usual. Selected genes are those that tell
# something beyond all others, at a false discovery rate of 5 %.

start = time.perf_counter()
of_genes = column_importance(model, views, y, columns={"genes": None})
print("\n".join(str(of_genes).splitlines()[:9]))
print(f"{time.perf_counter() - start:.1f} s")

# %%
# Many genes are correlated with y, most of them because they are neighbours of the four:

correlations = np.abs(np.corrcoef(genes.T, y)[-1, :-1])
print(f"\n{np.sum(correlations > 0.113)} of 500 genes have a correlation with p < 0.05;")
print(f"selected: {sorted(np.array(of_genes.names)[of_genes.selected].tolist())}")

# %%
# Measurements
# ------------
# The Gaussian kernel is smooth. The importance is the root of the mean squared derivative of the
# model, times the standard deviation of the column.

of_clinic = column_importance(model, views, y, columns={"clinic": None})
print(f"\nselected: {sorted(np.array(of_clinic.names)[of_clinic.selected].tolist())}")

# %%
# Figure
# ------
# Selected columns are blue. Numbers at the right are the stability: how often a column is among
# the most important ones in half-samples.

fig, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
of_genes.plot(axes[0], n_columns=10)
of_clinic.plot(axes[1], n_columns=10)
path = Path("out", "column_importance.png").resolve()
path.parent.mkdir(exist_ok=True)
fig.savefig(path, dpi=150)
print(f"\nPicture: {path}")
