"""Pictures of what was learnt, in the manner of scikit-learn's displays.

A display holds plain data; ``plot(ax)`` draws them and returns the display, whose ``ax_`` and
``figure_`` can be changed further. The class methods ``from_…`` take the data from an estimator or
a result and draw at once. Drawing needs matplotlib, ``pip install "manykernels[report]"``.

============  ============================  ===================================================
`weights`     :class:`WeightsDisplay`       kernel weights, also by class, region, target
`weights`     :class:`PathDisplay`          weights along the norm p or λ
`importance`  :class:`ImportanceDisplay`    value of each view, with intervals
`kernels`     :class:`AlignmentDisplay`     how alike kernels are
`kernels`     :class:`MissingViewsDisplay`  which samples have which views
`gate`        :class:`GateDisplay`          where each kernel, or region, counts
`validation`  :class:`ValidationDisplay`    scores over a grid, and the chosen point
`validation`  :class:`ConvergenceDisplay`   how the gap closed
`base`                                      axes, plain data, SVG; colours, tables, numbers
============  ============================  ===================================================
"""

from .gate import GateDisplay
from .importance import ImportanceDisplay
from .kernels import AlignmentDisplay, MissingViewsDisplay
from .validation import ConvergenceDisplay, ValidationDisplay
from .weights import PathDisplay, WeightsDisplay

__all__ = [
    "AlignmentDisplay",
    "ConvergenceDisplay",
    "GateDisplay",
    "ImportanceDisplay",
    "MissingViewsDisplay",
    "PathDisplay",
    "ValidationDisplay",
    "WeightsDisplay",
]
