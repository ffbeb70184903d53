"""The curves of :mod:`benchmarks.landmarks`, drawn from its measured values."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure


def draw(results: dict[str, dict[str, Any]], default: int) -> Figure:
    """Accuracy against landmarks beside exact kernels; a line marks the `default`."""
    figure = Figure(figsize=(3.1 * len(results), 3.0), layout="constrained")
    axes = figure.subplots(1, len(results), squeeze=False)[0]
    for ax, (title, part) in zip(axes, results.items(), strict=True):
        curve = {row["landmarks"]: row["accuracy"] for row in part["curve"]}
        exact = part["exact"]["accuracy"]
        ax.axvline(default, color="#9a9a9a", linestyle=":", linewidth=1)
        ax.axhline(exact, color="#c55a11", linestyle="--", linewidth=1.2)
        ax.annotate(
            "exact", (min(curve), exact), xytext=(0, 3), textcoords="offset points",
            color="#c55a11", fontsize=9,
        )  # fmt: skip
        ax.plot(list(curve), list(curve.values()), "o-", color="#0072b2", markersize=4)
        ax.set_xscale("log", base=2)
        ax.set_xticks(list(curve), [str(number) for number in curve], fontsize=8)
        ax.minorticks_off()
        ax.tick_params(axis="y", labelsize=8)
        ax.margins(y=0.15)
        ax.set_title(title, loc="left", weight="bold", fontsize=10)
        ax.set_xlabel("landmarks of each kernel", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("accuracy of test rows, %", fontsize=9)
    return figure
