"""Fig. 1 of Yan et al. (2012), drawn from the results of :mod:`benchmarks.simulation`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchmarks.simulation import Result

SHOWN_WEIGHTS = (5, 30)
COLORS = {"ℓ1": "#c55a11", "ℓ2": "#2a6f97", "ℓ∞": "#9a9a9a"}
CLASS_COLORS = ("#2a6f97", "#c55a11")


def draw(result: Result, views: list[np.ndarray]) -> Figure:
    """Points of three views, (2, n, 2) each, learnt weights, and error rates."""
    figure = Figure(figsize=(9, 7.6), layout="constrained")
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=[1.0, 1.0, 1.35])
    _draw_views(top.subplots(1, 3, sharex=True, sharey=True), views)
    shown = [n for n in SHOWN_WEIGHTS if n in result.outcomes]
    for n, ax in zip(shown, np.atleast_1d(middle.subplots(1, max(1, len(shown)))), strict=False):
        _draw_weights(ax, result.example(n))
    _draw_errors(bottom.subplots(), result)
    return figure


def _draw_views(axes: np.ndarray, views: list[np.ndarray]) -> None:
    for points, ax in zip(views, axes, strict=True):
        for members, color in zip(points, CLASS_COLORS, strict=True):
            ax.plot(*members.T, ".", color=color, alpha=0.8)
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_title("Three views, two classes", loc="left", weight="bold", fontsize=10)


def _draw_weights(ax: Axes, weights: np.ndarray) -> None:
    n = weights.shape[1]
    for i, name in enumerate(("ℓ1", "ℓ2")):
        ax.bar(np.arange(n) + 0.4 * i - 0.2, weights[i], 0.4, color=COLORS[name], label=name)
    ax.set_title(f"Weights, {n} kernels", loc="left", weight="bold", fontsize=10)
    ax.set_xticks([])
    ax.set_xlabel("kernel")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)


def _draw_errors(ax: Axes, result: Result) -> None:
    n_kernels = np.array(result.n_kernels)
    errors = np.array([result.errors(n) for n in n_kernels])
    for i, name in enumerate(COLORS):
        mean, deviation = errors[..., i].mean(axis=1), errors[..., i].std(axis=1)
        style = {"color": COLORS[name], "markersize": 5, "capsize": 3, "elinewidth": 0.8}
        # Set apart a little, for bars not to cover each other.
        ax.errorbar(n_kernels + 0.5 * (i - 1), mean, deviation, fmt="o-", label=name, **style)
    ax.axhline(result.errors(1)[:, 0].mean(), color="#767676", linestyle=":", linewidth=1)
    ax.annotate(
        "one kernel",
        (n_kernels[-1] + 0.5, result.errors(1)[:, 0].mean()),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        color="#767676",
        fontsize=9,
    )
    ax.set_title("Error rate, mean and deviation", loc="left", weight="bold", fontsize=10)
    ax.set_xlabel("number of kernels")
    ax.set_xticks(n_kernels)
    ax.set_ylim(bottom=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
