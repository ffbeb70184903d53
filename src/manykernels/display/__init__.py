"""Pictures of what was learnt, in the manner of scikit-learn's displays.

A display holds plain data; ``plot(ax)`` draws them and returns the display, whose ``ax_`` and
``figure_`` can be changed further. The class methods ``from_…`` take the data from an estimator or
a result and draw at once. Drawing needs matplotlib, ``pip install "manykernels[report]"``.

=============  ===============================  =============================================
`weights`      :class:`WeightsDisplay`          kernel weights, also by class, region, target
`path`         :class:`PathDisplay`             weights along the norm p or λ
`importance`   :class:`ImportanceDisplay`       what each view is worth, with intervals
`alignment`    :class:`AlignmentDisplay`        how alike kernels are
`gate`         :class:`GateDisplay`             where each kernel, or region, counts
`validation`   :class:`ValidationDisplay`       scores over a grid, and what was chosen
`convergence`  :class:`ConvergenceDisplay`      how the gap closed
`missing`      :class:`MissingViewsDisplay`     which samples have which views
`base`                                         what all share: axes, plain data, SVG
`parts`                                        tables in colours, axes, names at lines
`style`                                        colours, names and numbers
=============  ===============================  =============================================
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
