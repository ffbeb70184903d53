"""
Selecting columns and kernel widths
===================================

A regression data set has six columns, of which two matter: the target is a fast oscillation in the
first and a smooth curve in the second. Each column has Gaussian kernels of three widths, and
:class:`~manykernels.MKSVR` with p = 1 selects columns and widths.
"""

# %%
# Eighteen kernels, one for each column and width.

import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKSVR
from manykernels.kernels import RBF

EPSILON = 0.2
COLUMNS = ["wave", "bend", "noise 1", "noise 2", "noise 3", "noise 4"]
WIDTHS = {"narrow": 0.25, "medium": 1.0, "wide": 4.0}

rng = np.random.default_rng(0)


def make(n):
    """Return a table, and its targets with and without noise."""
    X = rng.uniform(-2, 2, (n, len(COLUMNS)))
    truth = np.sin(6 * X[:, 0]) + 0.6 * X[:, 1] ** 2
    return X, truth + 0.15 * rng.standard_normal(n), truth


X, y, _ = make(250)
X_test, _, truth = make(1000)
kernels = [
    (f"{column}, {scale}", RBF(0.5 / width**2).on([j]))
    for j, column in enumerate(COLUMNS)
    for scale, width in WIDTHS.items()
]

# %%
# Deviations of up to ε are not penalised. Samples within this tube are not support vectors: the
# model would be the same without them.

print(f"{'':<8}{'above 1%':>14}{'support vectors':>17}{'test error':>12}{'certified gap':>15}")
models = {}
for p in (1, 2, np.inf):
    model = models[p] = MKSVR(kernels, p=p, C=1.0, epsilon=EPSILON).fit(X, y)
    error = np.sqrt(np.mean((model.predict(X_test) - truth) ** 2))
    print(
        f"{f'p = {p:g}':<8}{np.count_nonzero(model.weights_ > 0.01):>14d}"
        f"{len(model.support_):>17d}{error:>12.3f}{model.certificate_.rel_gap:>15.0e}"
    )

# %%
# Each kernel depends on one column, so the fit is a sum of functions of one column. They are drawn
# with a band of ±ε. Each sample is drawn at the value of the function plus its deviation from the
# whole fit. The few per cent of weight on noise columns are all in narrow kernels, which fit the
# noise of the targets best.

model = models[1]
BLUE, ORANGE, INK = "#2a6f97", "#c55a11", "#1b1b1b"
fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), width_ratios=[1, 1.5, 1.5], layout="constrained")
percent = 100 * model.weights_.reshape(len(COLUMNS), len(WIDTHS))
axes[0].imshow(percent, cmap="Blues", vmin=0, vmax=80, aspect="auto")
for (row, column), value in np.ndenumerate(percent):
    text = f"{value:.0f}" if value >= 0.5 else "·"
    color = "white" if value > 55 else INK
    axes[0].text(column, row, text, ha="center", va="center", color=color)
axes[0].set_xticks(range(len(WIDTHS)), list(WIDTHS))
axes[0].set_yticks(range(len(COLUMNS)), COLUMNS)
axes[0].tick_params(length=0)
axes[0].spines[:].set_visible(False)
axes[0].set_title("Weights at p = 1, per cent", loc="left", weight="bold", fontsize=10)


def part_of(j, values):
    """Return the contribution of column j to the fit, with the other columns at zero."""
    table = np.zeros((len(values), len(COLUMNS)))
    table[:, j] = values
    return model.predict(table) - model.predict(np.zeros((1, len(COLUMNS))))


outside = np.isin(np.arange(len(y)), model.support_)
deviation = y - model.predict(X)
grid = np.linspace(-2, 2, 300)
for j, ax in enumerate(axes[1:]):
    line = part_of(j, grid)
    ax.fill_between(grid, line - EPSILON, line + EPSILON, color=BLUE, alpha=0.18, lw=0, label="±ε")
    ax.plot(grid, line, color=BLUE, lw=2, label="fit")
    place = part_of(j, X[:, j]) + deviation
    ax.plot(X[~outside, j], place[~outside], ".", ms=3, color="#767676", label="samples")
    ax.plot(
        X[outside, j],
        place[outside],
        "o",
        ms=4.5,
        mfc="none",
        color=ORANGE,
        label="support vectors",
    )
    ax.set_title(f"Part of column “{COLUMNS[j]}”", loc="left", weight="bold", fontsize=10)
    ax.set_xlabel(COLUMNS[j])
    ax.spines[["top", "right"]].set_visible(False)
fig.legend(*axes[1].get_legend_handles_labels(), loc="outside lower right", ncols=4, frameon=False)
plt.show()
