"""
Displays of fitted models
=========================

:mod:`manykernels.display` has display classes as in scikit-learn: ``from_estimator`` and the other
class methods ``from_…`` draw the figure, ``plot(ax)`` draws it into other axes, and ``ax_`` and
``figure_`` can be modified. The colours are suitable for colour-blind readers, and dark styles of
matplotlib are respected.
"""

# %%
# Kernel weights
# --------------
# Four views of handwritten digits and one of noise, with default kernels. Kernels are grouped by
# view; those with a weight of zero are not drawn.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from manykernels import MKFDA, MKFDACV, LocalizedSVC, kernels_for, view_importance
from manykernels.datasets import load_digit_views
from manykernels.display import (
    AlignmentDisplay,
    ConvergenceDisplay,
    GateDisplay,
    ImportanceDisplay,
    MissingViewsDisplay,
    PathDisplay,
    ValidationDisplay,
    WeightsDisplay,
)
from manykernels.kernels import RBF, Linear
from manykernels.model_selection import lp_path

digits, y = load_digit_views(noise=1)
names = ["rows", "columns", "gradients", "fourier", "noise1"]
rows = np.random.default_rng(0).permutation(len(y))[:200]
views = {name: digits[name][rows] for name in names}
y = y[rows]

model = MKFDA(p=1, reg=3.0).fit(views, y)
display = WeightsDisplay.from_estimator(model)
print(f"{np.count_nonzero(model.weights_)} of {len(model.weights_)} kernels have a weight")

# %%
# Similarity of kernels
# ---------------------
# From here on there is one kernel per view. The last row is the alignment with the classes.

kernels = kernels_for(views, RBF(gamma="median")).fit(views)
stack = kernels(views)
display = AlignmentDisplay.from_stack(stack, y)

# %%
# Choosing p and λ
# ----------------
# Scores of the grid in five folds. The simplest point within one standard error of the best is
# chosen: the largest p, and for this p the best λ.

chosen = MKFDACV("precomputed", regs=np.logspace(-2, 2, 5), one_standard_error=True).fit(stack, y)
display = ValidationDisplay.from_estimator(chosen)
print(f"p = {chosen.p_:.3g} and λ = {chosen.reg_:g} were chosen")

# %%
# Weights as a function of p, at the chosen λ. The smaller p, the smaller the weight of the noise.

norms = sorted({1.0, 1.1, 1.25, 1.5, 2.0, 4.0, np.inf, chosen.p_})
path = lp_path(stack, y, ps=norms, regs=[chosen.reg_])
display = PathDisplay.from_path(path, p=chosen.p_)

# %%
# Importance of views
# -------------------
# Computed from half of the samples, to save time.

model = MKFDA("precomputed", p=chosen.p_, reg=chosen.reg_)
half = stack[:100, :100]
importance = view_importance(model, half, y[:100], scoring="neg_log_loss", n_resamples=10)
display = ImportanceDisplay.from_importance(importance)

# %%
# Convergence
# -----------
# The inner solves are factorisations here.

solvers = {
    name: MKFDA("precomputed", p=1.5, solver=name, tol=1e-5).fit(stack, y)
    for name in ("newton", "sip", "analytic")
}
display = ConvergenceDisplay.from_estimators(solvers)

# %%
# Gates
# -----
# The gates of two linear kernels, for a class boundary with a corner.

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (200, 2))
corner = X[:, 1] > np.abs(X[:, 0])
lines = [("one line", Linear()), ("another line", Linear())]
gated = LocalizedSVC(lines, C=10, normalize=None).fit(X, corner)
display = GateDisplay.from_estimator(gated, X)

# %%
# Missing views
# -------------
# Tables of the same patients are matched by label; some patients are missing in some tables.

patients = np.array([f"P{number}" for number in range(150)])
tables = {
    name: pd.DataFrame({name: rng.normal(size=150)}, index=patients)[rng.random(150) < share]
    for name, share in {"clinic": 1.0, "genes": 0.8, "proteins": 0.6, "scan": 0.9}.items()
}
display = MissingViewsDisplay.from_views(tables)
print(f"{len(display.counts)} patterns of {len(patients)} patients")
plt.show()
