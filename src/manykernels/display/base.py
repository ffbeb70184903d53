"""What all displays share: axes to draw on, and their data as plain numbers or as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Stands for the colour of text while an SVG is made; no other colour of a picture is the same.
_INK = "#1b1b1c"
_INKED = (
    *("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor"),
    *("xtick.color", "ytick.color", "xtick.labelcolor", "ytick.labelcolor"),
)


@dataclass(eq=False)
class Display:
    """Base of the displays: plain data, which :meth:`plot` draws.

    A display is a dataclass; its fields are what is drawn. Matplotlib is imported when something
    is drawn, not before.
    """

    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Draw on `ax`, or in a new figure."""
        raise NotImplementedError

    def data(self) -> dict[str, Any]:
        """What is drawn, as lists, numbers and strings, which JSON can hold."""
        given = (one.name for one in fields(self) if one.init)
        return {name: _plain(getattr(self, name)) for name in given}

    def to_svg(self, **kwargs: Any) -> str:
        """The picture as an ``<svg>`` element, to be put into a page as it is.

        Text is text, the ground is transparent and what is black takes the colour of the text
        around it, on light pages and on dark ones. The display itself stays as it is.

        Parameters
        ----------
        **kwargs
            As for :meth:`plot`.
        """
        plt = pyplot()
        # The salt makes the names of parts the same every time.
        settings = {"svg.fonttype": "none", "svg.hashsalt": type(self).__name__}
        with plt.rc_context({**settings, **dict.fromkeys(_INKED, _INK)}), plt.ioff():
            figure = copy(self).plot(**kwargs).figure_
            try:
                file = StringIO()
                figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
            finally:
                plt.close(figure)
        svg = file.getvalue().replace(_INK, "currentColor")
        return svg[svg.index("<svg") :]

    def _begin(self, ax: Axes | None, size: tuple[float, float]) -> Axes:
        """The axes given, or those of a new figure of this size in inches."""
        return self._begin_several(None if ax is None else [ax], 1, size)[0]

    def _begin_several(
        self, axes: Any, number: int, size: tuple[float, float], **options: Any
    ) -> list[Axes]:
        """As :meth:`_begin`, side by side or as `options` of ``plt.subplots`` say."""
        if axes is None:
            plt = pyplot()
            options = {"nrows": 1, "ncols": number, **options}
            _, made = plt.subplots(figsize=size, layout="constrained", squeeze=False, **options)
            axes = made.ravel()
        else:
            axes = np.ravel(axes)
        if len(axes) < number:
            raise ValueError(
                f"{type(self).__name__} draws on {number} axes, but ax has {len(axes)}."
            )
        self.ax_, self.figure_ = axes[0], axes[0].figure
        return list(axes)


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Displays need matplotlib: pip install "manykernels[report]".'
        ) from error
    return plt


def required(estimator: Any, attribute: str, why: str) -> Any:
    """An attribute of a fitted estimator, or an error: the estimator, and `why` it has none."""
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise ValueError(f"{type(estimator).__name__} has no {attribute}: {why}")
    return getattr(estimator, attribute)


def shaped(name: str, values: Any, *sizes: int | None, of: str) -> np.ndarray:
    """An array of numbers with these sizes, None for any, or an error that says what they are."""
    array = np.asarray(values, dtype=np.float64)
    fits = array.ndim == len(sizes) and all(
        size in (None, found) for size, found in zip(sizes, array.shape, strict=False)
    )
    if not fits:
        raise ValueError(f"{name} must be {of}; got the shape {array.shape}.")
    return array


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return value
