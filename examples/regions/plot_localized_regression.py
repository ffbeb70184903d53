"""
Piecewise linear regression
===========================

:class:`~manykernels.LocalizedSVR` with three copies of the linear kernel fits three straight lines
and learns in which region each of them is used. The data are simulated and have the shape of the
motorcycle data in figure 7 of Gönen and Alpaydın (2013): the head acceleration of a rider in a
crash is constant at first, falls, rises and levels out.
"""

# %%
# The noise increases when the crash begins. ``Polynomial(1)`` is the linear kernel plus a
# constant, so each line has its own intercept.

import matplotlib.pyplot as plt
import numpy as np

from manykernels import LocalizedSVR
from manykernels.gating import Softmax
from manykernels.kernels import Polynomial

EPSILON = 16.0

rng = np.random.default_rng(0)
times = np.sort(rng.uniform(2, 58, 130))
knots, heights = [0, 14, 21, 32, 40, 60], [0, 0, -110, 35, 0, 0]
noise = np.interp(times, [0, 12, 16, 40, 60], [2, 2, 22, 22, 10])
y = np.interp(times, knots, heights) + noise * rng.standard_normal(len(times))
X = ((times - 30) / 15)[:, None]

# %%
# The objective has local minima, and the eight random starts do not all end in the same one. The
# best is kept. By default, gates below 1e-6 are set to zero; with ``threshold=0`` the fit is
# exactly the sum of its parts.

lines = [(f"line {j}", Polynomial(1, gamma=1.0)) for j in (1, 2, 3)]
# Settings of the paper: softmax gates of all columns, learnt until the objective converges.
paper = {"features": slice(None), "penalty": 0.0, "early_stopping": 0, "quasi_newton": False}
gate = Softmax(n_init=8, threshold=0.0, **paper)
model = LocalizedSVR(lines, C=1000.0, epsilon=EPSILON, gating=gate, normalize=None, tol=1e-2).fit(
    X, y
)
print("objective from each start:", *(f"{value:.0f}" for value in model.restart_objectives_))

# %%
# The fit is the sum of the lines, each multiplied by its gate.

grid = np.linspace(2, 58, 400)
G = ((grid - 30) / 15)[:, None]
fit, gates = model.predict(G), model.gate(G)
at_support = model.gate(model.support_vectors_) * model.dual_coef_.T
lines_at = Polynomial(1, gamma=1.0)(G, model.support_vectors_) @ at_support + model.intercept_
assert np.allclose(fit, (gates * lines_at).sum(axis=1))

order = np.argsort((gates * grid[:, None]).sum(axis=0) / gates.sum(axis=0))
print(f"{'line':<6}{'largest gate from':>18}{'to':>8}{'samples':>9}")
for number, j in enumerate(order, 1):
    region = grid[gates.argmax(axis=1) == j]
    n_samples = model.region_summary()[j]["n_largest"]
    print(f"{number:<6}{region.min():>18.1f}{region.max():>8.1f}{n_samples:>9d}")

COLORS, STYLES = ["#2a6f97", "#e08214", "#c2408f"], ["-", "--", "-."]
fig, (top, below) = plt.subplots(
    2, 1, figsize=(8, 5.2), sharex=True, height_ratios=[3, 1], layout="constrained"
)
top.fill_between(grid, fit - EPSILON, fit + EPSILON, color="#e4e4e4", lw=0, label="±ε")
top.plot(times, y, ".", ms=4, color="#767676", label="samples")
top.plot(grid, fit, color="#1b1b1b", lw=2, label="fit")
for number, (j, color, style) in enumerate(zip(order, COLORS, STYLES, strict=True), 1):
    held = np.where(gates[:, j] > 0.05, lines_at[:, j], np.nan)
    top.plot(grid, held, style, color=color, lw=2, label=f"line {number}")
    below.plot(grid, gates[:, j], style, color=color, lw=2)
top.set_ylabel("acceleration")
below.set_ylabel("gate")
below.set_xlabel("time")
for ax in (top, below):
    ax.spines[["top", "right"]].set_visible(False)
top.legend(frameon=False, ncols=2, loc="lower right")
plt.show()
