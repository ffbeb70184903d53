"""Every estimator inside scikit-learn: its checks, searches, pipelines, copies."""

import copy
import inspect
import pickle

import joblib
import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from manykernels import (
    MKFDA,
    MKSVC,
    MKSVR,
    Bands,
    Denoise,
    KernelUnion,
    LocalizedFDA,
    LocalizedSVC,
    LocalizedSVR,
    MKCox,
    MKCoxCV,
)
from manykernels.baselines import Average
from manykernels.gating import Gaussian
from manykernels.kernels import RBF, Linear
from manykernels.losses.smooth import Poisson
from manykernels.utils.sklearn import check_y
from tests.estimators.registry import (
    ARRAY,
    N_TEST,
    PAIRS,
    PAPER,
    ROW_NUMBERS,
    SHARED_TARGETS,
    STACK,
    STACKED,
    TABLE,
    TEST_STACK,
    UNJUDGED,
    X_TEST,
    Y_TEST,
    X,
    Y,
    answers,
    every_classifier,
    every_estimator,
    every_quick_estimator,
    every_variant,
    made,
    those,
)
from tests.problems import broken_unexpectedly, scikit_learn_checks, slow

CV = KFold(3)
VALUES = SHARED_TARGETS["values"]

# -- scikit-learn's own checks ---------------------------------------------------------------

FEW = [("line", Linear()), ("wide", RBF())]


class InOrder:
    """Takes any y, as scikit-learn's checks pass it: an event for every sample, in their order."""

    def _as_targets(self, y):
        if y is None or getattr(y, "dtype", np.dtype(float)).names:
            return super()._as_targets(y)
        time = rankdata(np.unique(check_y(y), return_inverse=True)[1], self.rank)
        return super()._as_targets((np.ones(len(time), bool), time))


class MKCoxInOrder(InOrder, MKCox):
    rank = "dense"


class MKCoxCVInOrder(InOrder, MKCoxCV):
    rank = "ordinal"  # or else folds of a few samples have only equal times


# The checks pass numbers that are no counts, and y of one dimension. With Efron's ties a weight of
# two is not a repeated row.
OPTIONS = {"counts": {"loss": Poisson}, "survival": {"ties": "breslow"}}
IN_ORDER = {MKCox: MKCoxInOrder, MKCoxCV: MKCoxCVInOrder}


def candidate(entry, kernels=None):
    """The estimator as it is by default, with less to do where a fit takes long."""
    single = {"ps": [2], "regs": [1.0], "Cs": [1.0], "epsilons": [0.1], "penalties": [0.1]}
    options = {name: value for name, value in single.items() if name in entry.parameters}
    if kernels is None and (entry.local or entry.chooses):
        kernels = FEW
    kind = IN_ORDER.get(entry.kind, entry.kind)
    return kind(kernels, **options, **OPTIONS.get(entry.target, {}))


# With its λ of 1e-8 KimFDA meets the rounding of kernels of few features.
@pytest.mark.filterwarnings("ignore:KimFDA is limited by rounding")
@every_quick_estimator
def test_scikit_learn_checks(entry):
    broken, n_passed = scikit_learn_checks(candidate(entry))
    broken = broken_unexpectedly(broken, candidate(entry))
    assert not broken, "\n".join(broken)
    assert n_passed > 40


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        MKFDA(denoise=Denoise()),
        MKFDA(denoise=Denoise("cv")),
        MKFDA(denoise=Bands()),
        MKSVC(multi_class="separate"),
        # Accurate enough that fits with weights and with repeated rows agree to seven digits.
        MKSVC(loss="squared_hinge", C="joint", tol=1e-8),
        LocalizedSVC(),
        LocalizedSVC(FEW, multi_class="single"),
        LocalizedSVC(FEW, multi_class="separate"),
        LocalizedSVC(FEW, gating="cluster"),
        made(LocalizedSVC, FEW, **PAPER),
    ],
    ids=str,
)
def test_scikit_learn_checks_of_variants(estimator):
    broken, n_passed = scikit_learn_checks(estimator)
    broken = broken_unexpectedly(broken, estimator)
    assert not broken, "\n".join(broken)
    assert n_passed > 40


# Of centred data the origin lies among the samples, and the objective is zero but for rounding.
# Some checks have classes of one sample.
@pytest.mark.filterwarnings("ignore:(MKOneClassSVM|KimFDA) is limited by rounding")
@pytest.mark.filterwarnings("ignore:Class .* has a single sample")
@every_quick_estimator
def test_scikit_learn_checks_on_kernels(entry):
    """Without those that scikit-learn's own machine does not pass, and a matrix that is no kernel.

    One check subtracts a constant from a kernel, which matters without a bias, with a gate, with
    regions or in products. Another takes a column of the kernel as y and, where targets must be
    positive, adds a constant to it in place, so that the kernel is no longer symmetric.
    """
    broken, n_passed = scikit_learn_checks(candidate(entry, "precomputed"))
    broken = broken_unexpectedly(broken, candidate(entry))
    expected = set()
    if entry.target == "none":
        theirs, _ = scikit_learn_checks(OneClassSVM(kernel="precomputed"))
        expected |= {line.split(":")[0] for line in theirs}
        assert expected == {"check_outliers_fit_predict", "check_outliers_train"}
    if entry.has_origin:
        expected.add("check_positive_only_tag_during_fit")
    if entry.target == "counts":
        expected.add("check_regressors_no_decision_function")
    reasons = ("positive_only", "X should be a square kernel matrix", "is not symmetric")
    assert {line.split(":")[0] for line in broken} == expected
    for line in broken:
        assert any(reason in line for reason in reasons)
    assert n_passed > 40


# -- searches --------------------------------------------------------------------------------

P_AND_REG = {"p": [1, 2, np.inf], "reg": [0.1, 10.0]}
P_AND_C = {"p": [1, np.inf], "C": [0.01, 10.0]}
C_AND_EPSILON = {"C": [0.01, 10.0], "epsilon": [0.0, 1.0]}
GAMMAS = {"kernels__shape__gamma": [0.01, 0.3, 30.0]}
LOCALIZED_FDA = made(LocalizedFDA, "precomputed", features="kernel0", **UNJUDGED)
SEARCHES = {
    "MKFDA, table": (MKFDA(), P_AND_REG, X, Y),
    "MKFDA, union": (MKFDA(KernelUnion(PAIRS)), GAMMAS, X, Y),
    "MKFDA, pairs": (MKFDA(PAIRS), GAMMAS, X, Y),
    "MKFDA, stack": (MKFDA("precomputed"), P_AND_REG, STACK, Y),
    "MKFDA, array": (MKFDA("precomputed"), P_AND_REG, ARRAY.data, Y),
    "MKSVC, table": (MKSVC(PAIRS), P_AND_C, X, Y),
    "MKSVC, union": (MKSVC(KernelUnion(PAIRS)), GAMMAS, X, Y),
    "MKSVC, pairs": (MKSVC(PAIRS, multi_class="separate"), GAMMAS, X, Y),
    "MKSVC, stack": (MKSVC("precomputed"), P_AND_C, STACK, Y),
    "MKSVC, array": (MKSVC("precomputed"), P_AND_C, ARRAY.data, Y),
    "MKSVR, stack": (MKSVR("precomputed"), C_AND_EPSILON, STACK, VALUES),
    "MKSVR, pairs": (MKSVR(PAIRS), GAMMAS, X, VALUES),
    "LocalizedSVC, table": (LocalizedSVC(PAIRS), {**GAMMAS, "C": [0.01, 1.0]}, X, Y),
    "LocalizedSVC, features": (
        made(LocalizedSVC, "precomputed", **UNJUDGED),
        {"C": [0.01, 1.0]},
        STACK,
        Y,
    ),
    "LocalizedSVC, kernel map": (
        made(LocalizedSVC, "precomputed", multi_class="single", **UNJUDGED),
        {"gating__features": ["shape", "noise"], "C": [0.01, 1.0]},
        STACK,
        Y,
    ),
    "LocalizedFDA, array": (LOCALIZED_FDA, {"reg": [1e-3, 10.0]}, ARRAY.data, Y),
    "LocalizedSVR, transformer": (
        made(LocalizedSVR, PAIRS, features=PCA(1)),
        {"gating__features__n_components": [1, 3], "epsilon": [0.1, 1.0]},
        X,
        VALUES,
    ),
    "LocalizedSVC, gates": (
        made(LocalizedSVC, PAIRS, **UNJUDGED),
        {"gating": ["softmax", "sigmoid", Gaussian(width=2.0)], "gating__features": [[0], 2]},
        X,
        Y,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ["LocalizedSVC, features", *slow(*SEARCHES)])
def test_grid_search_scores_as_a_loop_over_folds_with_any_number_of_jobs(case):
    estimator, grid, data, y = SEARCHES[case]
    searches = [GridSearchCV(estimator, grid, cv=CV, n_jobs=n).fit(data, y) for n in (1, 2)]
    found = [search.cv_results_["mean_test_score"] for search in searches]
    assert_array_equal(found[0], found[1])
    assert searches[0].best_params_ == searches[1].best_params_
    assert np.ptp(found[0]) > 0, "a grid of equal scores tests nothing"
    pairwise = estimator.kernels == "precomputed"
    by_hand = []
    for params in searches[0].cv_results_["params"]:
        folds = []
        for train, test in CV.split(y):
            columns = (train,) if pairwise else ()
            model = clone(estimator).set_params(**params)
            model.fit(data[np.ix_(train, *columns)], y[train])
            folds.append(model.score(data[np.ix_(test, *columns)], y[test]))
        by_hand.append(np.mean(folds))
    assert_allclose(found[0], by_hand, rtol=1e-12)


@pytest.mark.parametrize("kind", [MKFDA, *slow(MKSVC)])
def test_search_leaves_the_kernels_it_was_given_alone(kind):
    GridSearchCV(kind(PAIRS), GAMMAS, cv=CV).fit(X, Y)
    assert PAIRS[0][1].gamma == 0.3
    assert not hasattr(PAIRS[0][1], "n_features_in_")


def test_stack_and_array_search_alike():
    stack, array = (
        GridSearchCV(MKFDA("precomputed"), P_AND_REG, cv=CV).fit(data, Y).cv_results_
        for data in (STACK, ARRAY.data)
    )
    assert_array_equal(stack["mean_test_score"], array["mean_test_score"])


def test_nested_search():
    grid = {"C": [0.01, 10.0]}
    on_table, on_stack = (
        cross_val_score(GridSearchCV(MKSVC(form.kernels), grid, cv=2), form.data, Y, cv=CV)
        for form in (TABLE, STACKED)
    )
    assert_array_equal(on_stack, on_table)
    assert on_stack.mean() > 0.5


UNITS = np.array([1, 10, 100, 1000, 1e4])


@every_estimator
def test_pipeline_scales_as_by_hand(entry):
    scaler = StandardScaler().fit(X * UNITS)
    model = make_pipeline(StandardScaler(), entry.make(PAIRS)).fit(X * UNITS, entry.y)
    expected = entry.make(PAIRS).fit(scaler.transform(X * UNITS), entry.y)
    scaled = scaler.transform(X_TEST * UNITS)
    assert_array_equal(entry.scores(model, X_TEST * UNITS), entry.scores(expected, scaled))
    if entry.localized:
        assert_array_equal(model[-1].gate(scaled), expected.gate(scaled))


@pytest.mark.parametrize(("kind", "ps"), [(MKFDA, [1, 2]), (MKSVC, [1])])
def test_search_through_a_pipeline(kind, ps):
    search = GridSearchCV(
        Pipeline([("scale", StandardScaler()), ("model", kind(PAIRS))]),
        {"model__kernels__shape__gamma": [0.1, 10.0], "model__p": ps},
        cv=CV,
    ).fit(X * UNITS, Y)
    assert search.best_score_ > 0.5


METHODS = ["predict", "predict_proba", "decision_function"]


@those()
@pytest.mark.parametrize("normalize", ["multiplicative", *slow("spherical")])
def test_cross_val_predict_on_table_and_stack(entry, normalize):
    """Spherical normalisation must survive the cuts of cross-validation."""
    params = {"normalize": normalize} | ({"ps": [2]} if "ps" in entry.parameters else {})
    folds = list(CV.split(X))
    models = [entry.make(PAIRS, **params).fit(X[train], entry.y_at(train)) for train, _ in folds]
    methods = [method for method in METHODS if hasattr(models[0], method)]
    assert entry.method in methods
    for method in methods:
        by_hand = np.concatenate(
            [
                getattr(model, method)(X[test])
                for model, (_, test) in zip(models, folds, strict=True)
            ]
        )
        for form, rtol, atol in ((TABLE, 1e-12, 0), (STACKED, 1e-6, 1e-8)):
            model = entry.make(form.kernels, **form.params(entry), **params)
            found = cross_val_predict(model, form.data, entry.y, cv=CV, method=method)
            assert_allclose(found, by_hand, rtol=rtol, atol=atol)


@those(lambda entry: entry.target in ("two", "three") and not entry.localized)
def test_calibration_on_table_and_stack(entry):
    settings = {"cv": CV, "ensemble": False}
    on_table = CalibratedClassifierCV(entry.make(PAIRS), **settings).fit(X, entry.y)
    on_stack = CalibratedClassifierCV(entry.make("precomputed"), **settings).fit(STACK, entry.y)
    probabilities = on_table.predict_proba(X_TEST)
    assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.ptp(probabilities[:, 0]) > 0.3
    truth = Y_TEST if entry.target == "three" else Y_TEST == 0
    assert on_table.score(X_TEST, truth) > 0.5
    assert_allclose(on_stack.predict_proba(TEST_STACK), probabilities, atol=1e-5)


def test_calibrated_ensemble_on_table_and_row_numbers():
    # Members of an ensemble are given rows only, which no stack can be cut into.
    on_table = CalibratedClassifierCV(MKFDA(PAIRS), cv=CV).fit(X, Y)
    on_rows = CalibratedClassifierCV(MKFDA(ROW_NUMBERS.kernels), cv=CV).fit(ROW_NUMBERS.data, Y)
    probabilities = on_table.predict_proba(X_TEST)
    assert on_table.score(X_TEST, Y_TEST) > 0.5
    assert_allclose(on_rows.predict_proba(ROW_NUMBERS.new), probabilities, atol=1e-5)


# -- copies ----------------------------------------------------------------------------------


def through_joblib(model, folder):
    joblib.dump(model, folder / "model")
    return joblib.load(folder / "model")


@every_variant
@pytest.mark.parametrize("form", [TABLE, *slow(STACKED)], ids=["table", "stack"])
def test_copies_answer_the_same(entry, form, tmp_path):
    model = entry.fit(form)
    twins = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        through_joblib(model, tmp_path),
    ]
    expected = answers(model, form.new)
    assert len(expected) >= 1
    for twin in twins:
        assert twin is not model
        assert twin.certificate_ == model.certificate_
        for found, known in zip(answers(twin, form.new), expected, strict=True):
            assert_array_equal(found, known)


@every_variant
def test_clone_has_the_parameters_and_is_not_fitted(entry):
    params = {"normalize": "trace", "tol": 1e-3}
    if entry.has_p:
        params |= {"p": 1.5, "max_iter": 50}
    if entry.localized:
        params |= {"gating": Gaussian(scale=0.1, features=[0, 1], threshold=0.01)}
    model = entry.fit(**params)
    twin = clone(model)
    objects = ("kernels", "gating", "regions", "estimator")
    names = [name for name in model.get_params(deep=False) if name not in objects]
    assert [getattr(twin, name) for name in names] == [getattr(model, name) for name in names]
    for name in objects:
        assert repr(getattr(twin, name, None)) == repr(getattr(model, name, None))
    params.pop("gating", None)
    assert params.items() <= twin.get_params(deep=False).items()
    assert [pair[1] for pair in twin.kernels] != [pair[1] for pair in model.kernels]
    assert not [name for name in vars(twin) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        twin.predict(X)
    again = twin.fit(X, entry.y)
    assert_array_equal(entry.scores(again, X_TEST), entry.scores(model, X_TEST))


@every_variant
def test_fitting_again_forgets_the_first_fit(entry):
    model = entry.fit()
    again = entry.make(PAIRS).fit(X_TEST, entry.y_of(X_TEST)).fit(X, entry.y)
    for found, expected in zip(answers(again, X_TEST), answers(model, X_TEST), strict=True):
        assert_array_equal(found, expected)
    assert vars(again).keys() == vars(model).keys()
    if entry.has_support:
        assert_array_equal(again.support_, model.support_)


# -- output ----------------------------------------------------------------------------------


@every_classifier
def test_predictions_are_classes(entry):
    model = entry.fit()
    assert set(model.predict(X_TEST)) <= set(model.classes_)
    assert model.score(X, entry.y) > 0.8


def transforms(entry):
    """Return True for estimators with ``transform``; of a rule, the machine may have none."""
    return hasattr(entry.make(), "transform") and entry.target != "labels"


@those(transforms)
def test_transform_as_a_dataframe(entry):
    """At most one direction less than there are classes."""
    model = entry.make(PAIRS).set_output(transform="pandas").fit(X, entry.y)
    frame = model.transform(X_TEST)
    assert isinstance(frame, pd.DataFrame)
    assert frame.shape == (N_TEST, len(model.classes_) - 1)
    names = [f"{entry.name.lower()}{k}" for k in range(frame.shape[1])]
    assert list(frame.columns) == list(model.get_feature_names_out()) == names
    assert_array_equal(frame.to_numpy(), entry.fit().transform(X_TEST))


def test_what_cannot_transform_has_no_output_to_set():
    rule = Average(PAIRS, estimator=MKSVC())
    assert not any(hasattr(rule, name) for name in ("transform", "set_output"))
    assert not hasattr(rule, "get_feature_names_out")


@pytest.mark.parametrize("estimator", [MKFDA(), Average(estimator=MKFDA())])
def test_transformed_views_have_the_labels_of_their_rows(estimator):
    """The rows of the first table come first, in its order, whatever the order of the others."""
    table = pd.DataFrame(X, index=[f"s{k}" for k in range(len(X))])
    views = {"left": table.iloc[::-1, :2], "right": table.iloc[:, 2:]}
    model = clone(estimator).set_output(transform="pandas")
    model.fit(views, pd.Series(Y, index=table.index))
    frame = model.transform(views)
    assert list(frame.index) == list(table.index[::-1])
    assert list(model.set_output(transform="polars").transform(views).columns) == list(frame)
    assert isinstance(model.set_output(transform="default").transform(views), np.ndarray)


# -- input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [pa.Table.from_pandas, nw.from_native])
def test_arrow_tables_and_frames_of_narwhals_are_read_as_frames(container):
    """Columns have names and types; those of new rows may come in another order."""
    table = pd.DataFrame(X).add_prefix("x").assign(kind=np.where(X[:, 0] > 0, "a", "b"))
    model, expected = MKFDA().fit(container(table), Y), MKFDA().fit(table, Y)
    assert list(model.feature_names_in_) == list(table)
    assert model.kernel_names_ == expected.kernel_names_
    assert_array_equal(
        model.decision_function(container(table)), expected.decision_function(table)
    )
    turned = container(table[list(table)[::-1]])
    assert_array_equal(model.predict(turned), expected.predict(table))


# -- metadata --------------------------------------------------------------------------------


@those(lambda entry: entry.target not in ("none", "labels"))
def test_weights_are_routed_through_pipelines(entry):
    weights = np.linspace(0.5, 2.0, len(X))
    with config_context(enable_metadata_routing=True):
        asks = entry.make(PAIRS).set_fit_request(sample_weight=True)
        model = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asks)
        model.fit(X, entry.y, sample_weight=weights)
    scaled = StandardScaler().fit(X)
    expected = entry.make(PAIRS).fit(scaled.transform(X), entry.y, sample_weight=weights)
    assert_array_equal(model.predict(X_TEST), expected.predict(scaled.transform(X_TEST)))


@those(lambda entry: entry.target not in ("none", "labels"))
def test_weights_and_groups_are_routed_through_cross_validation(entry):
    """To ``fit``, ``score`` and the splitter."""
    weights, groups = np.linspace(0.5, 2.0, len(X)), np.arange(len(X)) // 2
    takes_groups = "groups" in inspect.signature(entry.kind.fit).parameters
    cv = GroupKFold(2)
    with config_context(enable_metadata_routing=True):
        model = entry.make(PAIRS).set_score_request(sample_weight=True)
        model.set_fit_request(sample_weight=True, **({"groups": True} if takes_groups else {}))
        params = {"sample_weight": weights, "groups": groups}
        scores = cross_validate(model, X, entry.y, cv=cv, params=params)["test_score"]
    expected = []
    for train, test in cv.split(X, groups=groups):
        more = {"groups": groups[train]} if takes_groups else {}
        by_hand = entry.make(PAIRS).fit(X[train], entry.y_at(train), weights[train], **more)
        expected.append(by_hand.score(X[test], entry.y_at(test), weights[test]))
    assert_array_equal(scores, expected)
