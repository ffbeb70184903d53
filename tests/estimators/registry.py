"""Every estimator and its variants, for the tests that hold of all of them.

A new estimator joins the suite by one line in `ENTRIES`.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import rbf_kernel

import manykernels as mk
from manykernels.baselines import (
    LPB,
    OBSCURE,
    Alignment,
    Average,
    BestKernel,
    CGBoost,
    EasyMKL,
    KimFDA,
    LPBeta,
    PolynomialCombination,
    Product,
)
from manykernels.gating import GivenRegions, KernelComponents
from manykernels.gating.gates import as_gate
from manykernels.gating.regions import as_regions
from manykernels.kernels import RBF, Kernel, Linear, Precomputed
from manykernels.survival import survival_array

# -- entries ---------------------------------------------------------------------------------


def nested(kind, params):
    """Parameters of an estimator, with those that it does not have set in its gate or regions."""
    names = inspect.signature(kind).parameters
    inner = {name: value for name, value in params.items() if name not in names}
    outer = {name: value for name, value in params.items() if name in names}
    for holder, made in (("gating", as_gate), ("regions", as_regions)):
        if inner and holder in names:
            held = clone(made(outer.get(holder, getattr(kind(), holder))))
            return {**outer, holder: held.set_params(**inner)}
    return params


def made(kind, kernels=None, **params):
    """An estimator with parameters of its gate or regions among its own, see `nested`."""
    return kind(kernels, **nested(kind, params))


@dataclass(frozen=True)
class Entry:
    """An estimator and the parameters that make it this variant.

    Attributes
    ----------
    kind : type
    target : {"three", "two", "values", "several", "counts", "survival", "none", "labels"}
        What it learns: three or two classes, a number or several, counts, events and times,
        nothing, or an indicator matrix.
    options : dict
        Parameters of the variant, and those that keep tests fast.
    variant : str
        What tells it from the first entry of its kind, which has none.
    """

    kind: type
    target: str
    options: dict[str, Any] = field(default_factory=dict)
    variant: str = ""

    @property
    def name(self):
        return self.kind.__name__

    def __str__(self):
        return f"{self.name}, {self.variant}" if self.variant else self.name

    def make(self, kernels=None, **params):
        return made(self.kind, kernels, **{**self.options, **params})

    def fit(self, form=None, sample_weight=None, **params):
        """A model of the shared samples, by default of their table."""
        form = form or TABLE
        model = self.make(form.kernels, **{**form.params(self), **params})
        return model.fit(form.data, self.y, sample_weight)

    @property
    def y(self):
        """Targets of the shared training samples."""
        return SHARED_TARGETS[self.target]

    def y_of(self, table):
        """Targets of the rows of any table of at least two columns."""
        return TARGETS_OF[self.target](table)

    def y_at(self, rows):
        """Targets of some of the shared training samples."""
        return None if self.y is None else self.y[rows]

    def targets(self, y):
        """Labels or numbers as what it learns: survival models learn from their order."""
        return survival_of(y) if self.target == "survival" else y

    @property
    def method(self):
        """The method whose answers are numbers."""
        numbers = ("values", "several", "counts", "survival")
        return "predict" if self.target in numbers else "decision_function"

    def scores(self, model, data):
        return getattr(model, self.method)(data)

    # What it supports.

    @property
    def parameters(self):
        return set(inspect.signature(self.kind).parameters)

    localized = property(lambda self: "gating" in self.parameters)
    # Whether it has weights for every region, and whether these are found from all kernels.
    regional = property(lambda self: "regions" in self.parameters)
    finds_regions = property(
        lambda self: self.regional and (self.chooses or "regions" not in self.options)
    )

    @property
    def looks_at_kernels(self):
        """Whether it has a gate on components of the kernels, the default."""
        return self.localized and "features" not in self.options

    local = property(lambda self: self.localized or self.regional)
    discriminant = property(lambda self: "FDA" in self.name)
    # Whether its kernel weights are those of a square loss, on centred kernels.
    square = property(lambda self: self.discriminant or "Ridge" in self.name)
    # Whether its loss is smooth, but not square.
    smooth = property(lambda self: self.name.startswith(("MKLogistic", "MKGLM", "MKCox")))
    # Whether it chooses from a grid.
    chooses = property(lambda self: "scoring" in self.parameters)
    has_p = property(lambda self: "p" in self.parameters)
    # Whether it takes p = 1, where kernels can have no weight at all.
    sparse = property(lambda self: self.has_p and self.kind is not OBSCURE)
    has_solver = property(lambda self: "solver" in self.parameters)
    # Whether it makes one kernel of several, from which another estimator, its machine, learns.
    merges = property(lambda self: "estimator" in self.parameters)
    # Whether it takes kernels with negative values, as most in these tests are.
    signed = property(lambda self: self.kind is not Product)
    # Whether something is learnt from centred kernels, beside which heavy samples are lost.
    centres = property(
        lambda self: self.square or self.smooth or self.kind in (Alignment, PolynomialCombination)
    )
    # Whether it matters what is the origin of the feature space.
    has_origin = property(
        lambda self: (
            self.target == "none"
            or self.local
            or self.kind in (OBSCURE, PolynomialCombination, Product)
        )
    )
    # Whether weights or a gate are learnt by a descent to a stationary point.
    descends = property(lambda self: self.localized or self.kind is PolynomialCombination)
    # Whether each of several classes, targets or labels has weights of its own.
    separate = property(lambda self: self.variant.startswith("separate"))
    # Whether it keeps support vectors.
    has_support = property(
        lambda self: self.localized or not (self.square or self.smooth or self.merges)
    )


def survival_of(y):
    """Events at times in the order of y; every third sample is censored."""
    time = rankdata(y, "ordinal")
    return survival_array((np.arange(len(time)) % 3 != 2, time))


GRID = {"ps": [1, 2], "regs": [1.0]}
MACHINE_GRID = {"ps": [1, 2], "Cs": [1.0]}
# Labels with one weight vector for all.
SHARED = {"multi_label": "shared"}
# Without samples that are held out, where a variant is not about these.
UNJUDGED = {"early_stopping": 0}
# The method of Gönen & Alpaydın (2013).
PAPER = {
    **UNJUDGED,
    "gating": "softmax",
    "features": slice(None),
    "normalize": "spherical",
    "penalty": 0.0,
    "quasi_newton": False,
    "tol": 1e-2,
}

REGION_GRID = {"regions": [1, 2], "sharpness": [2.0], "ps": [2], "Cs": [1.0], "cv": 2}
GATED_GRID = {"ps": [2], "Cs": [1.0], "penalty": [np.inf, 0.1], "cv": 2}

# Regions whose sharpness is given: to choose it takes twelve more fits.
SHARP = {"sharpness": 1.0}
TWO_CLUSTERS = GivenRegions(KMeans(2, random_state=0))

ENTRIES = [
    Entry(mk.MKFDA, "three"),
    Entry(mk.MKFDA, "two", {"p": 1}, "p=1"),
    Entry(mk.MKFDA, "three", {"p": 1, "reg": "joint"}, "joint"),
    Entry(mk.MKFDA, "labels", {}, "separate labels"),
    Entry(mk.MKFDA, "labels", SHARED, "shared labels"),
    Entry(mk.MKFDACV, "three", {**GRID, "cv": 2}),
    Entry(mk.MKFDACV, "two", GRID, "folds"),
    Entry(mk.MKFDACV, "labels", GRID, "separate labels"),
    Entry(mk.MKFDACV, "labels", {**GRID, **SHARED}, "shared labels"),
    Entry(KimFDA, "two", {"reg": 0.1}),
    Entry(OBSCURE, "three", {"random_state": 0}),
    Entry(OBSCURE, "two", {"random_state": 0}, "binary"),
    Entry(EasyMKL, "three"),
    Entry(EasyMKL, "two", {}, "binary"),
    Entry(mk.MKSVC, "three"),
    Entry(mk.MKSVC, "two", {}, "binary"),
    Entry(mk.MKSVC, "three", {"multi_class": "separate"}, "separate"),
    Entry(mk.MKSVC, "three", {"multi_class": "single"}, "single"),
    Entry(mk.MKSVC, "three", {"loss": "squared_hinge", "C": "joint"}, "joint"),
    Entry(mk.MKSVC, "labels", {}, "separate labels"),
    Entry(mk.MKSVC, "labels", SHARED, "shared labels"),
    Entry(mk.MKSVCCV, "three", {**MACHINE_GRID, "cv": 2}),
    Entry(mk.MKSVCCV, "two", {**MACHINE_GRID, "class_weight": "balanced"}, "folds"),
    Entry(mk.MKSVCCV, "three", {**MACHINE_GRID, "multi_class": "single", "cv": 2}, "single"),
    Entry(mk.MKSVCCV, "labels", MACHINE_GRID, "separate labels"),
    Entry(mk.MKSVCCV, "labels", {**MACHINE_GRID, **SHARED}, "shared labels"),
    Entry(mk.MKSVR, "values"),
    Entry(mk.MKRidge, "values"),
    Entry(mk.MKRidge, "several", {}, "several"),
    Entry(mk.MKRidge, "several", {"multi_target": "separate"}, "separate"),
    Entry(mk.MKRidgeCV, "values", {**GRID, "cv": 2}),
    Entry(mk.MKRidgeCV, "several", {**GRID, "cv": "closed-form"}, "closed form"),
    Entry(mk.MKRidgeCV, "several", {**GRID, "multi_target": "separate"}, "separate"),
    Entry(mk.MKSVRCV, "values", {**MACHINE_GRID, "epsilons": [0.1], "cv": 2}),
    Entry(mk.MKLogistic, "three"),
    Entry(mk.MKLogistic, "two", {}, "binary"),
    Entry(mk.MKLogistic, "two", {"p": 1}, "p=1"),
    Entry(mk.MKLogisticCV, "three", {**GRID, "cv": 2}),
    Entry(mk.MKLogisticCV, "two", {**GRID, "class_weight": "balanced"}, "folds"),
    Entry(mk.MKGLM, "counts"),
    Entry(mk.MKGLM, "counts", {"p": 1}, "p=1"),
    Entry(mk.MKGLMCV, "counts", {**GRID, "cv": 2}),
    Entry(mk.MKCox, "survival"),
    Entry(mk.MKCox, "survival", {"p": 1, "ties": "breslow"}, "p=1"),
    Entry(mk.MKCoxCV, "survival", {**GRID, "cv": 2}),
    Entry(mk.MKOneClassSVM, "none", {"nu": 0.3}),
    Entry(mk.LocalizedSVC, "three"),
    Entry(mk.LocalizedSVC, "two", PAPER, "paper"),
    Entry(mk.LocalizedSVC, "three", {**UNJUDGED, "multi_class": "separate"}, "separate"),
    Entry(mk.LocalizedSVC, "three", {**PAPER, "multi_class": "single"}, "single"),
    Entry(mk.LocalizedSVC, "three", {**UNJUDGED, "gating": "cluster"}, "cluster"),
    Entry(mk.LocalizedSVC, "two", {**UNJUDGED, "gating": "instance"}, "instance"),
    Entry(mk.LocalizedSVR, "values"),
    Entry(mk.LocalizedSVCCV, "three", GATED_GRID),
    Entry(mk.LocalizedSVRCV, "values", {**GATED_GRID, "epsilons": [0.1]}),
    Entry(mk.LocalizedOneClassSVM, "none", {"nu": 0.3}),
    Entry(mk.LocalizedFDA, "three"),
    Entry(mk.ConvexLocalizedSVC, "three", SHARP),
    Entry(mk.ConvexLocalizedSVC, "two", {"p": 1, "regions": TWO_CLUSTERS}, "given"),
    Entry(mk.ConvexLocalizedSVC, "three", {**SHARP, "multi_class": "separate"}, "separate"),
    Entry(mk.ConvexLocalizedSVC, "three", {}, "chosen"),
    Entry(mk.ConvexLocalizedSVR, "values", SHARP),
    Entry(mk.ConvexLocalizedFDA, "three", SHARP),
    Entry(mk.ConvexLocalizedSVCCV, "three", REGION_GRID),
    Entry(mk.ConvexLocalizedSVCCV, "two", {**REGION_GRID, "class_weight": "balanced"}, "folds"),
    Entry(mk.ConvexLocalizedSVRCV, "values", {**REGION_GRID, "epsilons": [0.1]}),
    Entry(LPBeta, "three", {"Cs": [1.0]}),
    Entry(LPBeta, "two", {"Cs": [0.1, 1.0], "cv": 3}, "chosen"),
    Entry(LPB, "three", {"Cs": [1.0]}),
    Entry(LPB, "two", {"Cs": [1.0]}, "binary"),
    Entry(CGBoost, "three"),
    Entry(CGBoost, "two", {}, "binary"),
    Entry(Average, "three"),
    Entry(Average, "three", {"estimator": mk.MKFDA()}, "discriminant"),
    Entry(Average, "two", {"estimator": mk.MKSVCCV(Cs=[1.0])}, "folds"),
    Entry(Average, "several", {"estimator": mk.MKRidgeCV(regs=[1.0])}, "several"),
    Entry(Product, "three"),
    Entry(BestKernel, "three", {"estimator": mk.MKSVCCV(Cs=[10.0, 100.0])}),
    Entry(BestKernel, "two", {"estimator": mk.MKFDACV(regs=[1.0])}, "discriminant"),
    Entry(BestKernel, "values", {"estimator": mk.MKRidgeCV(regs=[1.0])}, "values"),
    Entry(Alignment, "three"),
    Entry(Alignment, "values", {"estimator": mk.MKSVR(), "method": "independent"}, "values"),
    Entry(PolynomialCombination, "values"),
    Entry(PolynomialCombination, "three", {"estimator": mk.MKFDA(), "norm": 1}, "classes"),
]
ONE_OF_EACH = [entry for entry in ENTRIES if not entry.variant]


def those(condition=lambda entry: True, among=ENTRIES, waiting=None):
    """Parametrize a test over the entries for which something holds.

    Fits of some take long: tests of these wait for `make test-slow`, by default all searches if
    the test is of all variants. Those that refuse negative values of kernels have tests of their
    own.
    """
    found = [entry for entry in among if entry.signed and condition(entry)]
    return parametrized(found, waiting or (waits_or_searches if among is ENTRIES else waits))


def waits(entry):
    """Variants, baselines, local ones, which have tests of their own, and most searches.

    What these have in common with MKFDACV and MKSVCCV is tested by the latter.
    """
    is_baseline = entry.kind.__module__.startswith("manykernels.baselines")
    is_twin = entry.chooses and (entry.target == "values" or entry.smooth)
    return bool(entry.variant or entry.local or is_baseline or is_twin)


def waits_or_searches(entry):
    return waits(entry) or entry.chooses


def parametrized(entries, waiting):
    slow = {True: [pytest.mark.slow], False: []}
    return pytest.mark.parametrize(
        "entry",
        [
            pytest.param(entry, marks=slow[bool(waiting and waiting(entry))], id=str(entry))
            for entry in entries
        ],
    )


every_variant = those()
# For tests whose kernels have no negative values.
every_variant_on_positive_kernels = parametrized(ENTRIES, waits_or_searches)
every_estimator = those(among=ONE_OF_EACH)
# For tests that fit dozens of times.
every_quick_estimator = parametrized(ONE_OF_EACH, lambda entry: entry.kind is not mk.MKSVC)
every_classifier = those(lambda entry: entry.target in ("two", "three"), ONE_OF_EACH)
every_regressor = those(lambda entry: entry.target in ("values", "counts"), ONE_OF_EACH)
# Targets of survival models have tests of their own.
every_learner_of_targets = those(
    lambda entry: entry.target not in ("none", "survival"), ONE_OF_EACH
)
every_localized = those(lambda entry: entry.localized)
# Those that learn one gate, or one for each class, rather than a path of gates.
every_descent = those(lambda entry: entry.localized and not entry.chooses)
# A gate of single samples looks at none.
every_gate_on_features = those(
    lambda entry: entry.localized and entry.options.get("gating") != "instance"
)

# -- shared samples --------------------------------------------------------------------------

N_TRAIN, N_TEST = 48, 17
_rng = np.random.default_rng(0)
LABELS = np.arange(N_TRAIN + N_TEST) % 3
# Blobs that overlap; the last two columns are noise.
EVERYTHING = _rng.normal(size=(N_TRAIN + N_TEST, 5))
EVERYTHING[:, :3] += 1.2 * np.eye(3)[LABELS]
X, X_TEST = EVERYTHING[:N_TRAIN], EVERYTHING[N_TRAIN:]
Y, Y_TEST = LABELS[:N_TRAIN], LABELS[N_TRAIN:]
PAIRS = [("shape", RBF(0.3).on(slice(0, 3))), ("flat", Linear()), ("noise", RBF(1.0).on([3, 4]))]
UNION = mk.KernelUnion(PAIRS).fit(X)
# A gate looks at the features; other estimators do not.
STACK = UNION(X).with_features(X)
TEST_STACK = UNION(X_TEST, X).with_features(X_TEST)
SHARED_TARGETS = {
    "three": Y,
    "two": Y == 0,
    "values": X[:, 0] + np.sin(X[:, 1]),
    "several": np.column_stack([X[:, 0] + np.sin(X[:, 1]), 100 * X[:, 2] ** 2]),
    "counts": np.floor(np.exp(0.5 * X[:, 0] + 0.5 * X[:, 1])),
    # Times with a few ties, of which three quarters are those of events.
    "survival": survival_array(
        (np.arange(N_TRAIN) % 4 > 0, np.ceil(9 * np.exp(-X[:, 0] - np.sin(X[:, 1]))))
    ),
    "none": None,
    "labels": (X[:, :2] > 0.5).astype(int),
}
TARGETS_OF = {
    "three": lambda X: np.digitize(X[:, 0], [-0.4, 0.4]),
    "two": lambda X: (X[:, 0] > X[:, 1]).astype(int),
    "values": lambda X: X[:, 0] ** 2,
    "several": lambda X: X[:, :2] ** 2,
    "counts": lambda X: np.floor(3 * X[:, 0] ** 2),
    "survival": lambda X: survival_of(X[:, 0]),
    "none": lambda X: None,
    "labels": lambda X: (X[:, :2] > 0).astype(int),
}

# -- forms of X ------------------------------------------------------------------------------


class Form(NamedTuple):
    """One way to give the kernels and the shared samples."""

    name: str
    kernels: Any
    data: Any
    new: Any

    @property
    def pairwise(self):
        return isinstance(self.kernels, str)

    def params(self, entry):
        """What makes a gate look at kernels as at a table, by default at components of kernels.

        An array has no features (for a gate, regions), nor self-similarities of new samples.
        """
        if entry.looks_at_kernels:
            return {"features": KernelComponents()} if self.pairwise else {}
        if entry.localized and self.name == "array":
            return {"features": "kernel0", "normalize": "multiplicative"}
        if entry.regional and not entry.finds_regions and self.name == "array":
            return {"regions": 2}
        return {}

    def rows(self, rows, columns=None):
        """Some training samples; of a stack against some others, by default the same."""
        columns = rows if columns is None else columns
        return self.data[np.ix_(rows, columns)] if self.pairwise else self.data[rows]

    def new_rows(self, columns):
        """The test samples against some of the training samples."""
        return self.new[np.ix_(np.arange(N_TEST), columns)] if self.pairwise else self.new


TABLE = Form("table", PAIRS, X, X_TEST)
STACKED = Form("stack", "precomputed", STACK, TEST_STACK)
ARRAY = Form("array", "precomputed", np.array(STACK), np.array(TEST_STACK))
_whole = UNION(EVERYTHING)
_numbers = np.arange(N_TRAIN + N_TEST)[:, None]
ROW_NUMBERS = Form(
    "row numbers",
    [(name, Precomputed(_whole.kernel(name))) for name in _whole.names],
    _numbers[:N_TRAIN],
    _numbers[N_TRAIN:],
)
FORMS = [TABLE, STACKED, ARRAY]
every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)

# How many entries of a test block are held at once.
BLOCK_ENTRIES = "manykernels.estimators.kernel_data.BLOCK_ENTRIES"

# -- looking on ------------------------------------------------------------------------------

COMPARED = []


class Noted(Kernel):
    """A Gaussian kernel that notes how many rows it compares with how many."""

    def __init__(self, gamma, *, columns=None):
        self.gamma = gamma
        self.columns = columns

    def _evaluate(self, X, Y):
        COMPARED.append((self.gamma, len(X), len(X if Y is None else Y)))
        return rbf_kernel(X, Y, gamma=self.gamma)

    def _diagonal(self, X):
        return np.ones(len(X))


class Nothing(Noted):
    """A kernel that is zero."""

    def _evaluate(self, X, Y):
        return 0.0 * super()._evaluate(X, Y)

    def _diagonal(self, X):
        return np.zeros(len(X))


class Recorder:
    """A callback that notes the tasks it is told of, and may ask to stop after some."""

    def __init__(self, stop_after=None):
        self.begun, self.ended, self.calls = [], [], []
        self.stop_after = stop_after

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, **given):
        self.begun.append(context)

    def on_fit_task_end(self, estimator, context, **given):
        self.ended.append(context)
        return self.stop_after is not None and len(self.ended) >= self.stop_after

    def parts_of(self, task):
        """Parts of a task that have ended."""
        return [ended for ended in self.ended if ended.parent is task]


# -- bad input -------------------------------------------------------------------------------


def refused(message, error=ValueError):
    return pytest.raises(error, match=message)


def changed(array, index, value):
    """A copy with one entry (or several) replaced."""
    array = np.array(array, dtype=float)
    array[index] = value
    return array


# -- answers ---------------------------------------------------------------------------------

METHODS = (
    "predict",
    "decision_function",
    "predict_proba",
    "predict_log_proba",
    "transform",
    "score_samples",
    "gate",
    "active_kernels",
    "evaluations",
    "memberships",
)


def answers(model, data):
    """What every method says of new samples."""
    return [getattr(model, method)(data) for method in METHODS if hasattr(model, method)]
