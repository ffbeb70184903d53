"""What may be restored from a file without being asked for by name.

The classes of this package are listed one by one, with the attributes of a fitted model in mind:
estimators, kernels, transforms, gates, certificates. Each is restored by ``__new__`` and a dict of
attributes. None of them has a ``__new__``, ``__del__`` or ``__setstate__`` that does more than
keep what it is given, and the tests look at this for every name below. A class that is added to
the package is not trusted until it is entered here.

From scikit-learn, the estimators that skops trusts are trusted, and besides them what their
parameters and ours often hold: splitters, scorers, kernels of Gaussian processes, selectors of
columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

import numpy as np

# Classes of this package that are part of fitted models, by the module that defines them.
OWN = {
    "baselines._merged": ("MergedKernel", "PowerOfSum"),
    "baselines._polynomial": ("WeightStationarity",),
    "baselines.alignment": ("Alignment",),
    "baselines.average": ("Average",),
    "baselines.best_kernel": ("BestKernel",),
    "baselines.cg_boost": ("CGBoost",),
    "baselines.easymkl": ("EasyMKL",),
    "baselines.kim": ("KimFDA", "_ZeroConstants"),
    "baselines.lp_b": ("LPB",),
    "baselines.lp_beta": ("LPBeta",),
    "baselines.obscure": ("OBSCURE",),
    "baselines.polynomial": ("PolynomialCombination",),
    "baselines.product": ("GeometricMean", "Product"),
    "estimators._decisions": ("DecisionCalibration",),
    "estimators._gate_inputs": ("ComponentReader", "GateInput", "NoTable", "TableReader"),
    "estimators._gated": ("GatedExpansion",),
    "estimators._inputs": ("MatrixSource", "TableSource"),
    "estimators._kernels": ("KernelExpansion",),
    "estimators._machines": ("SupportVectors", "_SubtractRowMean"),
    "estimators._multilabel": ("LabelModels",),
    "estimators._on_features": ("FeatureExpansion", "FeatureScaling"),
    "estimators._regional": ("SourceWithShares",),
    "estimators.convex_fda": ("ConvexLocalizedFDA",),
    "estimators.convex_svc": ("ConvexLocalizedSVC",),
    "estimators.convex_svc_cv": ("ConvexLocalizedSVCCV",),
    "estimators.convex_svr": ("ConvexLocalizedSVR",),
    "estimators.convex_svr_cv": ("ConvexLocalizedSVRCV",),
    "estimators.fda": ("MKFDA",),
    "estimators.fda_cv": ("MKFDACV",),
    "estimators.localized_fda": ("LocalizedFDA",),
    "estimators.localized_one_class": ("LocalizedOneClassSVM",),
    "estimators.localized_svc": ("LocalizedSVC",),
    "estimators.localized_svc_cv": ("LocalizedSVCCV",),
    "estimators.localized_svr": ("LocalizedSVR",),
    "estimators.localized_svr_cv": ("LocalizedSVRCV",),
    "estimators.one_class": ("MKOneClassSVM",),
    "estimators.ridge": ("MKRidge",),
    "estimators.ridge_cv": ("MKRidgeCV",),
    "estimators.svc": ("MKSVC",),
    "estimators.svc_cv": ("MKSVCCV",),
    "estimators.svr": ("MKSVR",),
    "estimators.svr_cv": ("MKSVRCV",),
    "gating.by_region": ("ByRegion",),
    "gating.certificate": ("StationarityCertificate",),
    "gating.components": ("KernelComponents",),
    "gating.features": ("GatingFeatures", "_KernelMap", "_PrincipalComponents"),
    "gating.gates": ("Gaussian", "Sigmoid", "Softmax"),
    "gating.indicators": (
        "Centres",
        "ClusterIndicators",
        "PerCluster",
        "PerSample",
        "RowIndicators",
    ),
    "gating.regions": ("KernelRegions",),
    "gating.shares": ("GivenRegions",),
    "kernels._reconstruction": ("Reconstruction",),
    "kernels._transformed": ("Guarantees", "Samples"),
    "kernels.adapters": ("GaussianProcessKernel", "PairwiseKernel"),
    "kernels.after": ("After",),
    "kernels.algebra": ("Constant", "Product", "Sum"),
    "kernels.axes": ("Axes",),
    "kernels.categories": ("Categorical", "Jaccard", "Tanimoto"),
    "kernels.completion": ("ConditionalCompletion", "MeanCompletion"),
    "kernels.inexact_strings": ("Gapped", "Mismatch", "_Subsequences"),
    "kernels.kinds": ("TrainedColumns",),
    "kernels.normal_scores": ("NormalScores",),
    "kernels.of_view": ("OfView",),
    "kernels.precomputed": ("FromDistances", "Precomputed"),
    "kernels.presence": ("Presence", "WhereKnown"),
    "kernels.samples": ("TrainingSamples",),
    "kernels.spectral": ("Bands", "Denoise"),
    "kernels.stack": ("KernelStack",),
    "kernels.standard": (
        "ChiSquare",
        "Cosine",
        "Intersection",
        "Laplacian",
        "Linear",
        "Polynomial",
        "RBF",
    ),
    "kernels.strings": ("Spectrum", "WeightedDegree", "Words", "_PlacedWords"),
    "kernels.subsets": ("RBFSubsets",),
    "kernels.transforms": ("Center", "Chain", "Multiplicative", "Spherical", "UnitTrace"),
    "kernels.union": ("KernelUnion",),
    "kernels.views": ("Views",),
    "losses.certificate": ("Certificate",),
    "scale.exact_features": (
        *("CategoriesMap", "ColumnsMap", "ExactFeatures", "MonomialsMap", "UnitRows"),
    ),
    "scale.kernel_maps": (
        *("CompleteRows", "ConstantMap", "MapsOfKernels", "ProductMap", "SumMap"),
        *("TransformedRows", "ValidatedRows"),
    ),
    "scale.landmarks": ("Fixed", "KMeansPlusPlus", "LeverageScores", "Uniform"),
    "scale.nystrom": ("Nystrom", "NystromMap"),
    "scale.random_features": ("AdditiveChiSquare", "FourierMap", "Phases", "RandomFeatures"),
    "scale.word_maps": ("NearWordsMap", "WordsMap"),
    "persistence.frames": ("Block", "Column", "Frame", "Labels", "Missing"),
    "persistence.plain": ("Arrays", "Entries", "Objects", "Pairs", "Stored"),
}
# Tuples with names of this package, which are made by calling them with their entries.
OWN_TUPLES = {"kernels._completing": ("Images", "Sums"), "kernels.axes": ("Cut",)}
# Functions of this package that default kernels transform columns with.
OWN_FUNCTIONS = {"kernels.auto": ("signed_log",)}
#: Types of the keys of dicts, which are called with the keys.
KEYS = frozenset({"builtins.str", "builtins.int", "builtins.float"})


def path_of(named: Any) -> str:
    """The name by which a type or function is found: that of its module and its own."""
    return f"{named.__module__}.{named.__name__}"


def _paths(listed: Mapping[str, tuple[str, ...]]) -> set[str]:
    package = __name__.partition(".")[0]
    return {f"{package}.{module}.{name}" for module, names in listed.items() for name in names}


@cache
def objects() -> Collection[str]:
    """Types that are made without calling them, and then given their attributes."""
    from sklearn.utils import all_estimators

    # A package that registers its estimators with scikit-learn is not thereby trusted.
    estimators = {path_of(one) for _, one in all_estimators()}
    estimators = {path for path in estimators if path.startswith("sklearn.")}
    return frozenset(_paths(OWN) | estimators | _sklearn_parts() | {"builtins.object"})


def _sklearn_parts() -> set[str]:
    from sklearn import model_selection
    from sklearn.compose import make_column_selector
    from sklearn.gaussian_process import kernels
    from sklearn.metrics import get_scorer

    splitters = [one for one in vars(model_selection).values() if hasattr(one, "get_n_splits")]
    covariances = [
        one for one in vars(kernels).values() if isinstance(one, type) and hasattr(one, "theta")
    ]
    scorer = type(get_scorer("accuracy"))
    parts = {make_column_selector, scorer, kernels.Hyperparameter, *splitters, *covariances}
    return set(map(path_of, parts))


@cache
def tuples() -> Collection[str]:
    """Types of tuples."""
    return frozenset(_paths(OWN_TUPLES) | {"builtins.tuple"})


@cache
def functions() -> Collection[str]:
    """Functions, which are found by name and not called: of arrays, or scores of scikit-learn."""
    from sklearn.metrics import get_scorer, get_scorer_names

    scores = {path_of(get_scorer(name)._score_func) for name in get_scorer_names()}
    ufuncs = {f"numpy.{name}" for name in dir(np) if isinstance(getattr(np, name), np.ufunc)}
    return frozenset(_paths(OWN_FUNCTIONS) | scores | ufuncs)


@cache
def array_types() -> Collection[str]:
    """Arrays and single numbers of NumPy."""
    numbers = {path_of(one) for one in np.sctypeDict.values()}
    return frozenset({"numpy.ndarray", *numbers} - {"numpy.object_", "numpy.void"})


@cache
def named_types() -> Collection[str]:
    """Types that a model may name, such as the type of the entries of a table."""
    primitive = {f"builtins.{one.__name__}" for one in (str, int, float, bool, complex, object)}
    return frozenset({*array_types(), *primitive})


@cache
def sparse_matrices() -> Collection[str]:
    """Sparse matrices, which SciPy restores by the format that it has written."""
    from scipy import sparse

    kinds = ("bsr", "coo", "csc", "csr", "dia")
    found = [getattr(sparse, f"{kind}_{what}") for kind in kinds for what in ("array", "matrix")]
    return frozenset(map(path_of, found))
