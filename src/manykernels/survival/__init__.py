"""Survival data: targets of events and times, Kaplan–Meier curves, baseline hazards.

A survival target has, for every sample, a time and whether the event was observed then. If it was
not, the sample is censored: the event comes later, or never. Scores of models are in
:mod:`manykernels.metrics`.

============== ===========================================================================
`targets.py`   reading of y: structured arrays, data frames, pairs
`curves.py`    step functions, Kaplan–Meier curves, baseline hazard and curves of Cox models
============== ===========================================================================

>>> from manykernels.survival import kaplan_meier, survival_array
>>> y = survival_array(([True, False, True, True], [2.0, 3.0, 5.0, 8.0]))
>>> curve = kaplan_meier(y["event"], y["time"])
>>> curve.times, curve.survival
(array([2., 3., 5., 8.]), array([0.75 , 0.75 , 0.375, 0.   ]))
"""

from .curves import (
    KaplanMeier,
    StepFunction,
    cumulative_baseline_hazard,
    hazard_functions,
    kaplan_meier,
    survival_curves,
)
from .targets import survival_array, survival_target

__all__ = [
    "KaplanMeier",
    "StepFunction",
    "cumulative_baseline_hazard",
    "hazard_functions",
    "kaplan_meier",
    "survival_array",
    "survival_curves",
    "survival_target",
]
