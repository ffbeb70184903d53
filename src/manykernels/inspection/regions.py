"""The picture of kernel weights that differ between regions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Weights with a number in their cell are white on cells darker than this part of the scale.
_DARK = 0.55


@dataclass
class RegionWeightsDisplay:
    """A table in colours: a row for every region, a column for every kernel.

    Parameters
    ----------
    weights : ndarray of shape (n_regions, n_kernels)
    kernel_names : list of str
    sizes : ndarray of shape (n_regions,)
        Mean share of training samples in each region.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manykernels import ConvexLocalizedSVC
    >>> from manykernels.inspection import RegionWeightsDisplay
    >>> model = ConvexLocalizedSVC(sharpness=2).fit(*load_iris(return_X_y=True))
    >>> display = RegionWeightsDisplay.from_estimator(model)
    >>> len(display.ax_.get_yticks())
    3
    """

    weights: np.ndarray
    kernel_names: list[str]
    sizes: np.ndarray
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, which: int = 0
    ) -> RegionWeightsDisplay:
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : ConvexLocalizedSVC, ConvexLocalizedSVR or ConvexLocalizedFDA
        ax : matplotlib Axes, optional
        which : int, default=0
            The class to draw, where classes have weights of their own.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "region_sizes_"):
            raise ValueError(f"{type(estimator).__name__} has no regions to draw weights of.")
        weights = np.asarray(estimator.weights_)
        weights = weights[which] if weights.ndim == 3 else weights
        display = cls(weights, list(estimator.kernel_names_), estimator.region_sizes_)
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> RegionWeightsDisplay:
        """Draw on `ax`, or on a new figure."""
        n_regions, n_kernels = self.weights.shape
        if ax is None:
            import matplotlib.pyplot as plt

            # Two thirds of an inch for each kernel, half of one for each region, and the names.
            size = (1.8 + 0.68 * n_kernels, 1.4 + 0.5 * n_regions)
            _, ax = plt.subplots(figsize=size, layout="constrained")
        most = float(self.weights.max()) or 1.0
        ax.imshow(self.weights, cmap="Blues", vmin=0.0, vmax=most, aspect="auto")
        for (region, kernel), weight in np.ndenumerate(self.weights):
            color = "white" if weight > _DARK * most else "black"
            text = f"{weight:.2f}"
            ax.text(kernel, region, text, ha="center", va="center", color=color, fontsize=8)
        regions = [f"{region} ({size:.0%})" for region, size in enumerate(self.sizes)]
        ax.set_yticks(range(n_regions), regions)
        ax.set_xticks(range(n_kernels), self.kernel_names, rotation=30, ha="right")
        ax.set_ylabel("region (share of samples)")
        ax.tick_params(length=0)
        self.ax_, self.figure_ = ax, ax.figure  # type: ignore[assignment]
        return self
