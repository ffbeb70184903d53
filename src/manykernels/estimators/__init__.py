"""The estimators, with the interface of scikit-learn.

====================  =======================================================================
`base`                `KernelEstimator`; decorators of classes and ``fit``; callbacks
`inputs`              reading X: tables, views, kernel matrices
`training_rows`       rows of X with their targets, weights and groups
`kernel_data`         kernels of the training rows; predictors
`weights`             learning kernel weights: parameters, domain, solver, certificate
`feature_data`        explicit features: the parameter ``approximation`` and ``partial_fit``
`on_features`         models of explicit features, from moments or in passes
`prediction`          from outputs to classes, probabilities, values and novelties
`grid`                grids of parameters: points, checked values, sets of kernels
`search`              parameters chosen by cross-validation: splits, scores, choice
`fda`                 `MKFDA`, `MKFDACV`
`ridge`               `MKRidge`, `MKRidgeCV`
`svm`                 `MKSVC`, `MKSVR`, `MKOneClassSVM`
`svm_cv`              `MKSVCCV`, `MKSVRCV`
`smooth`              `MKLogistic`, `MKLogisticCV`, `MKGLM`, `MKGLMCV`
`cox`                 `MKCox`, `MKCoxCV`
`gated`               kernels weighted by a gate
`localized`           `LocalizedSVC` and others, which learn a gate
`regional`            kernels of regions
`convex_localized`    `ConvexLocalizedSVC` and others, with weights for every region
====================  =======================================================================
"""

from .convex_localized import (
    ConvexLocalizedFDA,
    ConvexLocalizedSVC,
    ConvexLocalizedSVCCV,
    ConvexLocalizedSVR,
    ConvexLocalizedSVRCV,
)
from .cox import MKCox, MKCoxCV
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
from .smooth import MKGLM, MKGLMCV, MKLogistic, MKLogisticCV
from .svm import MKSVC, MKSVR, MKOneClassSVM
from .svm_cv import MKSVCCV, MKSVRCV

__all__ = [
    "MKFDA",
    "MKFDACV",
    "MKGLM",
    "MKGLMCV",
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
    "MKCox",
    "MKCoxCV",
    "MKLogistic",
    "MKLogisticCV",
    "MKOneClassSVM",
    "MKRidge",
    "MKRidgeCV",
]
