"""Plots of models and results, as scikit-learn displays.

A display has plain data; ``plot(ax)`` draws them and returns the display with the attributes
``ax_`` and ``figure_``. The class methods ``from_…`` take the data from an estimator or a result
and draw them. Drawing needs matplotlib, ``pip install "manykernels[report]"``.

===================================  ====================================================
:class:`WeightsDisplay`              kernel weights, also by class, region or target
:class:`PathDisplay`                 kernel weights along the norm p or λ
:class:`ImportanceDisplay`           importance of the views, with intervals
:class:`ColumnImportanceDisplay`     importance of columns, with intervals
:class:`AlignmentDisplay`            alignment of kernels
:class:`GateDisplay`                 values of a gate, or shares in regions
:class:`ValidationDisplay`           validation scores over a grid of parameters
:class:`ConvergenceDisplay`          convergence of solvers
:class:`MissingViewsDisplay`         views that samples have
:class:`SurvivalDisplay`             survival of groups of similar risk
:class:`SurvivalCalibrationDisplay`  predicted and observed probabilities of survival
===================================  ====================================================
"""

from .gate import GateDisplay
from .importance import ColumnImportanceDisplay, ImportanceDisplay
from .kernels import AlignmentDisplay, MissingViewsDisplay
from .survival import SurvivalCalibrationDisplay, SurvivalDisplay
from .validation import ConvergenceDisplay, ValidationDisplay
from .weights import PathDisplay, WeightsDisplay

__all__ = [
    "AlignmentDisplay",
    "ColumnImportanceDisplay",
    "ConvergenceDisplay",
    "GateDisplay",
    "ImportanceDisplay",
    "MissingViewsDisplay",
    "PathDisplay",
    "SurvivalCalibrationDisplay",
    "SurvivalDisplay",
    "ValidationDisplay",
    "WeightsDisplay",
]
