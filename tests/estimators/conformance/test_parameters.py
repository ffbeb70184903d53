"""Parameters of every estimator: what is refused, and those of kernels by their names."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from manykernels import (
    MKFDA,
    MKSVC,
    MKSVR,
    Bands,
    ConvexLocalizedFDA,
    ConvexLocalizedSVC,
    ConvexLocalizedSVR,
    Denoise,
    KernelUnion,
    LocalizedSVC,
    LocalizedSVCCV,
    MKRidge,
    Nystrom,
)
from manykernels.baselines import KimFDA
from manykernels.gating import Gaussian, KernelRegions, PerCluster, PerSample, Sigmoid, Softmax
from manykernels.kernels import RBF, Linear
from manykernels.kernels.transforms import Center
from manykernels.solvers import SOLVERS, Newton
from tests.estimators import registry
from tests.estimators.registry import ONE_OF_EACH, every_estimator, refused, those

N_ROWS = 12
rng = np.random.default_rng(0)
X = rng.normal(size=(N_ROWS, 3))
Y = np.arange(N_ROWS) % 2

# -- values ----------------------------------------------------------------------------------

# What no estimator takes for a parameter of this name.
REFUSED = {
    "approximation": ["landmarks", 3, Nystrom],
    "estimator": [3, "svc", MKSVC, LinearSVC()],
    "method": ["align", None],
    "degree": [0, 1.5, None],
    "norm": [0, 3, np.inf, None],
    "center": [-0.1, np.nan, None],
    "radius": [0.0, np.nan, None],
    "p": [0.99, -1.0, np.nan, "two", None],
    "reg": [0.0, -1.0, np.nan, np.inf, "auto", "Joint", None],
    "C": [0.0, -1.0, np.nan, np.inf, "auto", None],
    "epsilon": [-0.1, np.nan, np.inf, None],
    "nu": [0.0, -0.1, 1.01, np.nan, None],
    "tol": [0.0, -1e-6, np.nan],
    "max_iter": [0, -1, 1.5],
    "normalize": ["unit", 1],
    "missing": ["zero", None, np.nan],
    "denoise": [0.9, "cv", Denoise, Center()],
    "class_weight": ["uniform", [1.0, 2.0]],
    "priors": [0.5],
    "loss": ["square"],
    "ties": ["exact", None],
    "multi_class": ["ovr", "ovo"],
    "multi_target": ["each", None],
    "certify": ["yes", 2],
    "gating": [3, Softmax],
    "random_state": ["seed"],
    "cv": ["all"],
    "scoring": [3],
    "multi_label": ["single", None],
    "n_jobs": [1.5],
    "one_standard_error": ["yes", 1],
    "kernel_sets": [["linear"], "all", 3],
    "verbose": ["loud"],
    "lam": [-0.1, 1.1, np.nan, "auto", None],
    "n_epochs_online": [-1, 1.5, None],
    "n_epochs_batch": [-1, 1.5, None],
    "exact": ["yes", None],
}
# What is refused by some that others take.
REFUSED_BY = [(KimFDA, "reg", "joint"), (MKRidge, "reg", "joint"), (MKSVR, "C", "joint")]
# Checked by tests of their own.
OTHERS = {"kernels", "solver", "ps", "regs", "Cs", "epsilons", "regions"}
# What no gate and what no regions take.
REFUSED_BY_GATES = {
    "penalty": [-0.1, np.nan, "strong", None],
    "early_stopping": [1, -1, True, 2.5, "x", None],
    "start": ["zero", 0, None],
    "n_init": [0, -1, 1.5],
    "scale": [-0.1, np.nan, np.inf, None],
    "quasi_newton": ["yes"],
    "max_iter": [0, -1, 1.5, None],
    "threshold": [-0.1, 1.0, None],
    "random_state": ["seed"],
}
REFUSED_BY_ONE_GATE = [
    (Gaussian, "width", 0.0),
    (Gaussian, "width", np.inf),
    (Gaussian, "width", np.nan),
    (PerCluster, "n_clusters", 0),
    (PerCluster, "n_clusters", 2.0),
    (PerCluster, "clusterer", "kmeans"),
]
REFUSED_BY_REGIONS = {
    "n_regions": [0, -1, 1.5, "two", None, [1, 4]],
    "sharpness": [-0.1, np.nan, "sharp", None, [1.0, 2.0]],
    "n_init": [0, 1.5],
    "random_state": ["seed"],
}


@every_estimator
def test_every_parameter_is_checked(entry):
    assert entry.parameters <= REFUSED.keys() | OTHERS


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        *[
            (entry.kind, name, value)
            for entry in ONE_OF_EACH
            for name in sorted(entry.parameters & REFUSED.keys())
            for value in REFUSED[name]
        ],
        *REFUSED_BY,
    ],
)
def test_parameters_outside_their_range(kind, name, value):
    message = f"The '{name}' parameter of {kind.__name__} must be .*Got {re.escape(repr(value))}"
    with refused(message):
        kind(**{name: value}).fit(X, Y)


@pytest.mark.parametrize(
    ("gate", "name", "value"),
    [
        *[(Softmax, name, value) for name in REFUSED_BY_GATES for value in REFUSED_BY_GATES[name]],
        *REFUSED_BY_ONE_GATE,
    ],
)
def test_parameters_of_a_gate_outside_their_range(gate, name, value):
    message = f"The '{name}' parameter of {gate.__name__} must be .*Got {re.escape(repr(value))}"
    for kind in (LocalizedSVC, LocalizedSVCCV):
        with refused(message):
            kind(gating=gate(**{name: value})).fit(X, Y)


def test_every_parameter_of_a_gate_is_checked():
    assert Softmax().get_params().keys() == {"features", *REFUSED_BY_GATES}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name in REFUSED_BY_REGIONS for value in REFUSED_BY_REGIONS[name]],
)
def test_parameters_of_regions_outside_their_range(name, value):
    message = f"The '{name}' parameter of KernelRegions must be .*Got {re.escape(repr(value))}"
    for kind in (ConvexLocalizedSVC, ConvexLocalizedSVR, ConvexLocalizedFDA):
        with refused(message):
            kind(regions=KernelRegions(**{name: value})).fit(X, Y)


def test_parameters_of_gates_and_regions_in_a_grid_search():
    """Names and numbers become objects as soon as one of their parameters is set."""
    gated = LocalizedSVC().set_params(gating__penalty=0.1)
    assert isinstance(gated.gating, Sigmoid)
    assert gated.get_params()["gating__penalty"] == 0.1
    other = clone(gated).set_params(gating="softmax", gating__n_init=2)
    assert (other.gating.name, other.gating.n_init, other.gating.penalty) == ("softmax", 2, "auto")
    assert gated.gating.n_init == 1
    regional = ConvexLocalizedSVC(regions=2).set_params(regions__sharpness=1.0)
    assert (regional.regions.n_regions, regional.regions.sharpness) == (2, 1.0)
    for model, grid in (
        (LocalizedSVC(Linear()), {"gating__penalty": [0.01, 0.1]}),
        (ConvexLocalizedSVC(Linear(), regions=2), {"regions__sharpness": [1.0, 4.0]}),
    ):
        search = GridSearchCV(model, grid, cv=2).fit(X, Y)
        assert search.best_params_.items() <= search.best_estimator_.get_params().items()


def test_few_parameters():
    for entry in ONE_OF_EACH:
        most = 12 if entry.local else 17 if entry.chooses else 16
        assert len(entry.parameters) <= most, entry


def test_one_default_of_random_state():
    for kind in (Sigmoid, Softmax, Gaussian, PerCluster, PerSample, KernelRegions):
        assert kind().random_state == 0


def test_learning_c_with_the_hinge_loss():
    with refused('C="joint" needs loss="squared_hinge"'):
        MKSVC(C="joint").fit(X, Y)


@those(lambda entry: "class_weight" in entry.parameters, ONE_OF_EACH)
@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 0.0, 1: 1.0}, "class_weight must be positive and finite for every class"),
        ({0: -1.0}, "class_weight must be positive and finite for every class"),
        ({0: np.nan}, "class_weight must be positive and finite for every class"),
        ({0: np.inf}, "class_weight must be positive and finite for every class"),
        ({7: 2.0}, r"classes, \[0, 1\], are not in class_weight"),
    ],
)
def test_class_weights(entry, class_weight, message):
    with refused(message):
        entry.make(class_weight=class_weight).fit(X, Y)


@those(lambda entry: "class_weight" in entry.parameters, ONE_OF_EACH)
def test_class_weights_by_the_names_of_classes(entry):
    labels = np.array(["cat", "dog", "eel"])[registry.Y]
    strict = {"C": 0.01, "Cs": [0.01]}
    options = {name: value for name, value in strict.items() if name in entry.parameters}
    plain, by_name = (
        entry.make(registry.PAIRS, class_weight=weight, **options).fit(registry.X, labels)
        for weight in (None, {"dog": 100.0})
    )
    by_number = clone(by_name).set_params(class_weight={1: 100.0}).fit(registry.X, registry.Y)
    scores = by_name.decision_function(registry.X_TEST)
    assert_array_equal(scores, by_number.decision_function(registry.X_TEST))
    n_dogs, n_before = (np.sum(m.predict(registry.X_TEST) == "dog") for m in (by_name, plain))
    assert n_dogs > n_before


@those(lambda entry: "priors" in entry.parameters, ONE_OF_EACH)
@pytest.mark.parametrize(
    "priors", [[1.0], [0.2, 0.3, 0.5], [0.5, 0.6], [1.5, -0.5], [np.nan, 0.5], [[0.5, 0.5]]]
)
def test_priors(entry, priors):
    message = r"priors must be 2 probabilities that sum to 1, one per class \[0, 1\]; got "
    with refused(message + re.escape(repr(priors))):
        entry.make(priors=priors).fit(X, Y)


# -- solvers ---------------------------------------------------------------------------------


def never(A, B):
    raise AssertionError("a kernel was computed")


@those(lambda entry: entry.has_solver, ONE_OF_EACH)
@pytest.mark.parametrize("solver", ["simplex", None, 3, Newton, object()])
def test_unknown_solver(entry, solver):
    message = r"solver must be one of \['.*'newton'.*'\] or an object with a method solve, got "
    with refused(message + re.escape(repr(solver))):
        entry.make([("k", never)], solver=solver).fit(X, entry.targets(Y))


# Whatever the loss, some solvers are for p = 1 only, or for square losses.
UNFIT = [
    ("sdp", 1, "works for the square loss only"),
    ("coordinate", 1, "works for the square loss only"),
    ("qcqp", 2, "works at p=1 only"),
    ("silp", 2, "works at p=1 only"),
    ("reduced-gradient", 2, "works at p=1 only"),
]


@those(lambda entry: entry.has_solver and entry.has_support, ONE_OF_EACH)
@pytest.mark.parametrize(("solver", "p", "reason"), UNFIT)
def test_a_solver_that_does_not_fit_names_those_that_do(entry, solver, p, reason):
    if entry.regional and "p=1" in reason:
        reason = "has one norm of all weights, not one for each region"
    message = f"solver='{solver}' {reason}.*; solver='newton' or .* takes this problem"
    with refused(message) as caught:
        entry.make([("k", never)], p=p, solver=solver).fit(X, entry.targets(Y))
    named = re.findall(r"solver='([a-z-]+)'", str(caught.value))[1:]
    assert set(named) <= set(SOLVERS) - {solver}
    for name in named:
        model = entry.make(Linear(), p=p, solver=name, normalize=None, tol=1e-2)
        model.fit(X + 3.0, entry.targets(Y))
        assert model.certificate_.converged
        assert model.solver_ == name


# -- kernels ---------------------------------------------------------------------------------

DICT = {"line": Linear(), "wide": RBF(0.5)}
PAIRS = list(DICT.items())


NO_DICTS = [
    ({}, ValueError, "pairs, at least one, or a dict; got"),
    ({1: RBF()}, ValueError, r"must be a pair \(name, kernel\), got \(1, RBF\(\)\)"),
    ({"a": 3}, TypeError, "kernel 'a': 3 is not a kernel"),
    ({"a__b": RBF()}, ValueError, "must not contain __"),
]


@every_estimator
@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        ([("a", RBF()), ("a", Linear())], ValueError, r"not unique: \['a', 'a'\]"),
        ([("a", RBF()), Linear()], ValueError, r"pair \(name, kernel\), got Linear\(\)"),
        ([], ValueError, r"list of \(name, kernel\) pairs, at least one"),
        ("gaussian", ValueError, "no kernel named 'gaussian'.*'rbf'"),
        (3, TypeError, "3 is not a kernel"),
        ([("a", 3)], TypeError, "kernel 'a': 3 is not a kernel"),
        (RBF, TypeError, "is not a kernel"),
        *NO_DICTS,
    ],
)
def test_what_is_no_kernel(entry, kernels, error, message):
    with refused(message, error):
        entry.make(kernels).fit(X, entry.targets(Y))


@every_estimator
@pytest.mark.parametrize("form", [dict, list, tuple, KernelUnion])
def test_parameters_of_named_kernels(entry, form):
    model = entry.make(form(PAIRS))
    assert model.get_params()["kernels__wide__gamma"] == 0.5
    assert model.get_params()["kernels__line"].columns is None
    another = clone(model).set_params(kernels__wide__gamma=2.0, tol=1e-2)
    assert another.get_params()["kernels__wide__gamma"] == 2.0
    assert another.tol == 1e-2
    assert isinstance(another.kernels, list if form is tuple else form)
    assert another.fit(X, entry.targets(Y)).union_.kernels_[1][1].gamma == 2.0
    replaced = clone(model).set_params(kernels__wide=Linear())
    assert isinstance(replaced.get_params()["kernels__wide"], Linear)
    assert isinstance(replaced.fit(X + 3.0, entry.targets(Y)).union_.kernels_[1][1], Linear)
    with refused("Invalid parameter"):
        model.set_params(kernels__wide__width_of_nothing=1)
    # What was given is as it was, and not fitted.
    assert model.get_params()["kernels__wide__gamma"] == 0.5
    assert DICT["wide"].gamma == 0.5
    assert not hasattr(DICT["wide"], "n_features_in_")


@every_estimator
@pytest.mark.parametrize("form", [dict, list, tuple, KernelUnion])
def test_html_shows_the_kernels(entry, form):
    html = entry.make(form(PAIRS))._repr_html_()
    assert entry.name in html
    for name in DICT:
        assert name in html


@every_estimator
def test_a_dict_is_a_list_of_pairs(entry):
    model, expected = (
        entry.make(DICT).fit(X, entry.targets(Y)),
        entry.make(PAIRS).fit(X, entry.targets(Y)),
    )
    assert model.kernel_names_ == ["line", "wide"]
    assert_array_equal(model.predict(X), expected.predict(X))
    assert not hasattr(DICT["wide"], "n_features_in_")


@every_estimator
@pytest.mark.parametrize("kernels", [None, "precomputed", "rbf"])
def test_parameters_of_kernels_that_are_not_there(entry, kernels):
    model = entry.make(kernels)
    message = (
        rf"kernels__gamma cannot be set while kernels={kernels!r}, which has no parameters: pass "
        rf'kernels that have some, such as {entry.name}\(\[\("rbf", RBF\(\)\), '
        ".*kernels__rbf__gamma"
    )
    with refused(message):
        model.set_params(kernels__gamma=1.0)
    model.set_params(kernels=PAIRS, kernels__wide__gamma=3.0)
    assert model.get_params()["kernels__wide__gamma"] == 3.0


def test_a_search_over_a_kernel_of_a_dict():
    search = GridSearchCV(MKSVC(DICT), {"kernels__wide__gamma": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert (
        search.best_estimator_.kernels["wide"].gamma == search.best_params_["kernels__wide__gamma"]
    )


def test_a_union_of_a_dict():
    union, expected = KernelUnion(DICT), KernelUnion(PAIRS)
    assert union.kernels is DICT
    assert union.get_params().keys() == expected.get_params().keys()
    assert clone(union).kernels.keys() == DICT.keys()
    stack = union.fit(X)(X)
    assert_array_equal(stack.data, expected.fit(X)(X).data)
    assert union.names_ == ["line", "wide"]
    assert union.subset([1]).names_ == ["wide"]
    other = clone(union).set_params(wide__gamma=3.0, line=RBF(1.0))
    assert other.kernels == {"line": other.kernels["line"], "wide": other.kernels["wide"]}
    assert (other.kernels["line"].gamma, other.kernels["wide"].gamma) == (1.0, 3.0)
    renamed = other.set_params(kernels={"one": RBF()}, one__gamma=4.0)
    assert renamed.get_params()["one__gamma"] == 4.0
    assert "wide" in union._repr_html_()


@pytest.mark.parametrize(("kernels", "error", "message"), NO_DICTS)
def test_a_union_of_what_is_no_kernel(kernels, error, message):
    with refused(message, error):
        KernelUnion(kernels).fit(X)


@pytest.mark.parametrize(
    ("denoise", "message"),
    [
        (Denoise(90), r"variance must be a number in \(0, 1\]"),
        (Denoise([0.5] * 3), "variance has 3 numbers, but there are 2 kernels"),
        (Bands(0), "n_bands must be an integer of at least 1, got 0"),
    ],
)
def test_bad_parameters_inside_denoise_are_named(denoise, message):
    with refused(message):
        MKFDA(PAIRS, denoise=denoise).fit(X, Y)
