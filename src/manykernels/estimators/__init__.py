"""The estimators, with the interface of scikit-learn.

An estimator is one file. Its ``fit`` is a recipe of parts, each in a file of its own:

===============  ===========================================================================
`_base`          the base of all estimators; decorators of classes and of ``fit``
`_rows`          which training rows count, how much, and what is to be predicted for them
`_inputs`        what may be passed as X: a table, several, or ready-made kernel matrices
`_reading`       tables, several of them, and kernel matrices, checked
`_kernels`       kernels of the training rows, and the expansion that answers for new rows
`_learning`      learning kernel weights: domain, solver, warning
`_approximated`  the parameter ``approximation``, ``partial_fit``
`_gathering`     rows of any container: their sample, their moments on explicit features
`_feature_rows`  what fits on features learn from
`_on_features`   discriminants and ridge regressions from moments
`_features_cv`   p and λ chosen by folds of moments
`_ridge`         targets of ridge regressions, and what is kept of these
`_machines`      kernels of support vector machines, support vectors
`_passes`        machines on explicit features, learnt in passes over the rows
`_gate_inputs`   what a gate looks at
`_gated`         kernels weighted by a gate, for the localized estimators
`_gated_path`    gates at every point of a grid
`_regional`      kernels of regions, for the convex localized estimators
`_sharpness`     how sharp regions are to be
`_outputs`       predictions: classes, probabilities, values, novelties
`_progress`      callbacks and lines of progress
`_grid`          parameters to choose from, and the table of their scores
`_splits`        the splits behind a parameter ``cv``
`_held_out`      outputs at held-out samples, and scores of regressions
`_decisions`     scores of decision values, and probabilities from them
`_machine_path`  support vector machines at every point of a grid
`_regional_path` kernels of regions at every point of a grid
`_choice`        the choice of a point
`_search`        the search for it: splits, outputs at held-out samples, choice
`_multilabel`    several labels per sample
`_notebook`      what notebooks show of a fitted estimator
`_documentation` docstrings of inherited parameters
===============  ===========================================================================
"""

from .convex_localized import (
    ConvexLocalizedFDA,
    ConvexLocalizedSVC,
    ConvexLocalizedSVCCV,
    ConvexLocalizedSVR,
    ConvexLocalizedSVRCV,
)
from .fda import MKFDA, MKFDACV
from .localized import (
    LocalizedFDA,
    LocalizedOneClassSVM,
    LocalizedSVC,
    LocalizedSVCCV,
    LocalizedSVR,
    LocalizedSVRCV,
)
from .ridge import MKRidge, MKRidgeCV
from .svm import MKSVC, MKSVR, MKOneClassSVM
from .svm_cv import MKSVCCV, MKSVRCV

__all__ = [
    "MKFDA",
    "MKFDACV",
    "MKSVC",
    "MKSVCCV",
    "MKSVR",
    "MKSVRCV",
    "ConvexLocalizedFDA",
    "ConvexLocalizedSVC",
    "ConvexLocalizedSVCCV",
    "ConvexLocalizedSVR",
    "ConvexLocalizedSVRCV",
    "LocalizedFDA",
    "LocalizedOneClassSVM",
    "LocalizedSVC",
    "LocalizedSVCCV",
    "LocalizedSVR",
    "LocalizedSVRCV",
    "MKOneClassSVM",
    "MKRidge",
    "MKRidgeCV",
]
