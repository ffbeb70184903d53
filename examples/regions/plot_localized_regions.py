"""
Simple kernels, each in its own region
======================================

Usually the weight of a kernel is the same everywhere. :class:`~manykernels.LocalizedSVC` learns a
gate together with the machine, which is the weight of each kernel at each point. The boundary can
then be linear in one region and quadratic in another, or consist of three linear parts.

This example reproduces figure 1 of Gönen and Alpaydın (2013): four Gaussians, two for each class.
"""

# %%
# There are 400 training and 4000 test points. The class probabilities, and therefore the best
# possible boundary, are known.

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D

from manykernels import MKSVC, LocalizedSVC
from manykernels.datasets import make_gauss4
from manykernels.datasets.views import GAUSS4_MEANS as MEANS
from manykernels.datasets.views import GAUSS4_VARIANCES as VARIANCES
from manykernels.gating import Softmax
from manykernels.kernels import Polynomial


def bayes(X):
    """Return the difference of the class densities, positive for class 1."""
    squares = (X[:, None] - MEANS) ** 2 / VARIANCES
    densities = np.exp(-0.5 * squares.sum(axis=2)) / np.sqrt(VARIANCES.prod(axis=1))
    return densities[:, :2].sum(axis=1) - densities[:, 2:].sum(axis=1)


rng = np.random.default_rng(0)
X, y = make_gauss4(400, random_state=rng)
X_test, y_test = make_gauss4(4000, random_state=rng)

# %%
# A linear and a quadratic kernel, with one weight each and with a gate; then three linear kernels
# with a gate. The objective of a gated model has local minima: the best of three random starts is
# kept.

linear, quadratic = Polynomial(1, gamma=1.0), Polynomial(2, gamma=1.0)
both = [("linear", linear), ("quadratic", quadratic)]
three = [("first", linear), ("second", linear), ("third", linear)]
# Settings of the paper: softmax gates of all columns, learnt until the objective converges.
gate = Softmax(features=slice(None), penalty=0.0, early_stopping=0, quasi_newton=False, n_init=3)
models = {
    "One weight each:\nlinear + quadratic": MKSVC(both, p=1),
    "Localized:\nlinear + quadratic": LocalizedSVC(both, gating=gate, tol=1e-2),
    "Localized:\nthree linear": LocalizedSVC(three, gating=gate, tol=1e-2),
}

# %%
# The kernels are normalised as in the paper, so that each point has unit norm, and then used
# without normalisation. Spherical normalisation bends the linear boundaries. With it, the machine
# without a gate is nearly as accurate as the others, but needs more support vectors.

SETTINGS = [("spherical", 10.0), (None, 1.0)]
print(f"{'normalize':<12}{'':<36}{'test accuracy':>14}{'support vectors':>17}")
for normalize, C in SETTINGS:
    for name, model in models.items():
        model.set_params(normalize=normalize, C=C).fit(X, y)
        print(
            f"{normalize!s:<12}{name.replace(chr(10), ' '):<36}"
            f"{model.score(X_test, y_test):>14.1%}{len(model.support_) / len(X):>17.0%}"
        )
print(f"{'':<12}{'best possible':<36}{np.mean((bayes(X_test) > 0) == y_test):>14.1%}")

# %%
# The figure shows the models without normalisation. With one weight per kernel the boundary is one
# conic section. Where the gate changes from one kernel to another, this change can itself be the
# class boundary; there the two curves coincide.

BLUE, ORANGE, INK, PINK = "#2a6f97", "#e08214", "#1b1b1b", "#c2408f"
x1, x2 = np.meshgrid(np.linspace(-6.5, 6.5, 240), np.linspace(-8.5, 6, 240))
grid = np.column_stack([x1.ravel(), x2.ravel()])


def draw_zero(ax, values, **style):
    """Draw the curve on which `values` change their sign."""
    style = {name: [value] for name, value in style.items()}
    ax.contour(x1, x2, values.reshape(x1.shape), [0], **style)


fig, axes = plt.subplots(1, 3, figsize=(11, 4.9), sharex=True, sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    for label, color, marker in ((1, BLUE, "^"), (0, ORANGE, "o")):
        ax.plot(*X[y == label].T, marker, ms=3.5, mew=0, color=color, alpha=0.8)
    ax.plot(*X[model.support_].T, "o", ms=7, mfc="none", mec="#767676", mew=0.6)
    draw_zero(ax, bayes(grid), colors=INK, linestyles=":", linewidths=1.3)
    draw_zero(ax, model.decision_function(grid), colors=INK, linewidths=2.4)
    if isinstance(model, LocalizedSVC):
        # Compare logarithms: far from the data, the smaller gates are close to zero.
        gates = np.log(np.maximum(model.gate(grid), 1e-300))
        for i, j in combinations(range(gates.shape[1]), 2):
            first_two = np.isclose(gates[:, [i, j]].max(axis=1), gates.max(axis=1))
            lead = np.where(first_two, gates[:, i] - gates[:, j], np.nan)
            draw_zero(ax, lead, colors=PINK, linestyles="--", linewidths=2)
    ax.set_title(name, loc="left", weight="bold", fontsize=10)
    ax.set(xlim=(x1.min(), x1.max()), ylim=(x2.min(), x2.max()), xticks=[], yticks=[])
    ax.set_xlabel(
        f"test accuracy {model.score(X_test, y_test):.1%}, "
        f"{len(model.support_) / len(X):.0%} support vectors"
    )
handles = [
    Line2D([], [], color=INK, lw=2.4, label="boundary learnt"),
    Line2D([], [], color=INK, lw=1.3, ls=":", label="best boundary"),
    Line2D([], [], color=PINK, lw=2, ls="--", label="two gates are equal"),
    Line2D([], [], color="#767676", ls="", marker="o", mfc="none", label="support vector"),
]
fig.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
plt.show()
