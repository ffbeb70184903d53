"""What a report says is what the model knows, and no more."""

import json

import dask.array as da
import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, r2_score

from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    MKSVCCV,
    MKSVRCV,
    ConvexLocalizedSVC,
    Denoise,
    KernelStack,
    MKOneClassSVM,
    MKRidge,
    MKRidgeCV,
    Nystrom,
    RandomFeatures,
    report,
    view_importance,
)
from manykernels.baselines import Average
from manykernels.gating import KernelRegions
from manykernels.kernels import RBF
from manykernels.kernels.views import row_keys
from manykernels.metrics.classwise import effective_number
from manykernels.reporting.html import Report
from manykernels.reporting.judgement import calibration
from manykernels.reporting.summary import summarize
from tests.estimators.registry import STACKED, TABLE, X_TEST, every_variant, refused
from tests.problems import slow
from tests.reporting.pages import Page, parts, reported, svc, views_and_classes

IRIS = load_iris(return_X_y=True)


# -- every estimator -------------------------------------------------------------------------


@every_variant
def test_of_every_estimator(entry):
    """Without samples, and with new ones; all of it is JSON, and weights are the model's."""
    model = entry.fit(TABLE)
    y = None if entry.target == "none" else entry.y_of(X_TEST)
    for data in (summarize(model), summarize(model, TABLE.new, y)):
        json.dumps(data, allow_nan=False)
        page = Page(Report(data).html)
        assert page.unbalanced == []
        assert {"learnt", "proof", "data", "reproduce"} <= set(page.sections) <= set(data)
        weights = np.array([group["weights"] for group in data["learnt"]["groups"]])
        found = getattr(model, "weights_", getattr(model, "plain_weights_", None))
        np.testing.assert_array_equal(weights, np.reshape(found, weights.shape))
        assert data["learnt"]["kernels"] == list(model.kernel_names_)
        assert data["proof"]["converged"] == model.certificate_.converged
    assert data["judged"]["how"] == f"{len(X_TEST)} new samples"
    if is_classifier(model) and y.ndim == 1:
        assert data["judged"]["scores"][0]["value"] == pytest.approx(model.score(X_TEST, y))
    if is_regressor(model) and y.ndim == 1:
        assert data["judged"]["scores"][0]["value"] == pytest.approx(model.score(X_TEST, y))


# -- what was learnt -------------------------------------------------------------------------


def test_shares_by_view_and_effective_number():
    tables, y = views_and_classes()
    model = MKFDA().fit(tables, y)
    learnt = summarize(model)["learnt"]
    shares = model.weights_ / model.weights_.sum()
    assert learnt["effective"] == pytest.approx(float(effective_number(model.weights_)))
    own = [name.startswith("strong") for name in model.kernel_names_]
    assert learnt["view_shares"][0]["name"] == "strong"
    assert learnt["view_shares"][0]["share"] == pytest.approx(shares[own].sum())
    assert sum(one["share"] for one in learnt["view_shares"]) == pytest.approx(1.0)


def test_weights_of_regions_and_classes_have_names():
    X, y = IRIS
    regions = KernelRegions(2, sharpness=2.0)
    model = ConvexLocalizedSVC(regions=regions, multi_class="separate").fit(X, y)
    groups = summarize(model)["learnt"]["groups"]
    assert len(groups) == 3 * len(model.region_sizes_) == np.prod(model.weights_.shape[:2])
    assert groups[0]["name"].startswith("class 0, region 0 (")
    np.testing.assert_array_equal(groups[-1]["weights"], model.weights_[-1, -1])


def test_an_approximation_says_its_errors_and_what_is_certified():
    X, y = IRIS
    model = MKFDA(approximation=Nystrom(20)).fit(X, y)
    data = summarize(model)
    (column,) = data["learnt"]["columns"]
    np.testing.assert_array_equal(column["values"], model.approximation_errors_)
    assert data["proof"]["approximate"] == "Nystrom"
    assert "approximate kernels" in data["answers"][-1]["detail"]


def test_weights_are_not_said_to_matter():
    X, y = IRIS
    data = summarize(MKFDA(p=1).fit(X, y))
    assert data["answers"][0]["question"] == "Where is the weight?"
    data = summarize(MKFDA(p=1).fit(X, y), X, y, importance=True)
    assert data["answers"][0]["question"] == "What matters?"


@pytest.mark.parametrize("model", [MKFDA(p=np.inf), MKFDACV(ps=[np.inf], regs=[1.0])], ids=repr)
def test_equal_weights_are_not_called_the_best(model):
    X, y = IRIS
    data = summarize(model.fit(X, y))
    assert data["answers"][0]["answer"] == "Equal for all kernels"
    last = data["answers"][-1]
    assert (last["question"], last["answer"]) == ("Are the weights learnt?", "No: they are equal")
    assert "certified" not in last["detail"]
    assert "At p = ∞ the weights are given" in data["proof"]["certificate"]["claim"]


def test_equal_weights_of_several_targets_are_not_called_the_best():
    X, _ = IRIS
    for ps, answer in [([np.inf], "No: they are equal"), ([1, np.inf], "Yes: certified")]:
        model = MKRidgeCV(ps=ps, regs=[1.0], multi_target="separate").fit(X, X[:, :2])
        assert summarize(model)["answers"][-1]["answer"].startswith(answer)


def test_weights_that_a_rule_has_set_are_not_called_the_best():
    X, y = IRIS
    questions = [one["question"] for one in summarize(Average().fit(X, y))["answers"]]
    assert "Are these the best weights?" not in questions
    assert "Is the machine at its optimum?" in questions


def test_a_fit_that_was_stopped_is_not_called_certified():
    X, y = IRIS
    with pytest.warns(UserWarning, match="stopped"):
        model = MKFDA(p=1, tol=1e-12, max_iter=1).fit(X, y)
    answer = summarize(model)["answers"][-1]
    assert answer["good"] is False
    assert answer["answer"] == "No: stopped before convergence"


def test_the_curve_of_a_search_is_its_table():
    data = reported("search").data
    tables, y = views_and_classes()
    model = MKFDACV(RBF(), ps=[1, 2, np.inf], regs=[0.01, 0.1, 1.0]).fit(tables, y)
    curve = data["choice"]["curve"]
    np.testing.assert_array_equal(curve["scores"], model.validation_curve())
    i, k = curve["chosen"]
    assert curve["scores"][i][k] == model.best_score_ == data["choice"]["chosen"][0]["score"]
    assert data["choice"]["edges"] == (["λ"] if model.reg_ in (0.01, 1.0) else [])


# -- judged by what is new -------------------------------------------------------------------


def test_training_samples_are_judged_by_left_out_answers():
    tables, y = views_and_classes()
    model = MKFDA(RBF()).fit(tables, y)
    judged = reported("plain").data["judged"]
    left_out = model.classes_[model.left_out_log_proba_.argmax(axis=1)]
    assert judged["how"] == "60 training samples, each left out in closed form"
    assert judged["scores"][0]["value"] == pytest.approx(accuracy_score(y, left_out))
    np.testing.assert_array_equal(judged["confusion"], confusion_matrix(y, left_out))
    expected = log_loss(y, np.exp(model.left_out_log_proba_))
    assert judged["scores"][2]["value"] == pytest.approx(expected)


@pytest.mark.parametrize("kind", [*slow(MKFDACV), MKSVCCV, *slow(MKRidgeCV, MKSVRCV)])
@pytest.mark.parametrize("repeats", [1, *slow(2)])
def test_the_score_of_a_search_is_the_same_in_its_report(kind, repeats):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((40, 2)), repeats, axis=0)
    y = np.repeat(rng.integers(0, 2, 40), repeats)
    model = kind(ps=[1, 2]).fit(X, y)
    judged = summarize(model, X, y, importance=False)["judged"]
    assert judged["scores"][0]["value"] == pytest.approx(model.left_out_score_, abs=1e-12)
    assert judged["how"].startswith(f"{40 * repeats} training samples, held out in 5 folds")
    told = "40 of 80 rows repeat others and were kept together"
    assert (told in judged["how"]) == (repeats == 2)


@pytest.mark.parametrize("kind", [MKFDACV, MKSVCCV, MKRidgeCV, *slow(MKSVRCV)])
@pytest.mark.parametrize("precomputed", [False, *slow(True)])
def test_the_score_of_a_weighted_search_is_the_same_in_its_report(kind, precomputed):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 2)), rng.integers(0, 2, 40)
    X[:, 0] += y
    weights = rng.uniform(0.2, 5.0, 40)
    weights[[3, 17]] = 0.0
    options = {"ps": [1, 2]}
    if precomputed:
        X, options = RBF().fit(X)(X), {"ps": [2], "kernels": "precomputed"}
    model = kind(**options).fit(X, y, weights)
    judged = summarize(model, X, y, sample_weight=weights, importance=False)["judged"]
    assert judged["n_samples"] == 38
    assert judged["scores"][0]["value"] == pytest.approx(model.left_out_score_, abs=1e-12)
    assert judged["how"].endswith("scores are weighted, counts are not")


@pytest.mark.parametrize("kind", [MKFDACV, *slow(MKSVCCV, MKRidgeCV, MKSVRCV)])
def test_the_score_of_a_search_with_groups_is_the_same_in_its_report(kind):
    """All weights are five, which is not the same as five rows in place of one."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 2)), rng.integers(0, 2, 40)
    X[:, 0] += y
    about = {"sample_weight": np.full(40, 5.0), "groups": np.arange(40) // 4}
    model = kind(ps=[1, 2]).fit(X, y, **about)
    judged = summarize(model, X, y, **about, importance=False)["judged"]
    score = judged["scores"][0]
    assert score["value"] == pytest.approx(model.left_out_score_, abs=1e-12)
    assert score["low"] < score["value"] < score["high"] <= 1.0
    assert "40 rows of 10 groups were kept together" in judged["how"]


def test_weights_are_how_often_samples_count():
    """In scores and shares of a report, a sample of weight two is the same as two samples."""
    X, y = IRIS
    model = MKFDA(RBF(), reg=1.0).fit(X[::2], y[::2])
    weights = np.arange(75) % 3.0
    weighted = summarize(model, X[1::2], y[1::2], sample_weight=weights)["judged"]
    rows = np.repeat(np.arange(75), weights.astype(int))
    repeated = summarize(model, X[1::2][rows], y[1::2][rows])["judged"]
    assert weighted["n_samples"] < repeated["n_samples"]
    for scores in zip(weighted["scores"], repeated["scores"], strict=True):
        assert scores[0]["value"] == pytest.approx(scores[1]["value"])
    for name in ("recall", "precision"):
        assert [row[name] for row in weighted["classes"]] == pytest.approx(
            [row[name] for row in repeated["classes"]]
        )
    assert weighted["baseline"]["value"] == pytest.approx(repeated["baseline"]["value"])


def test_importance_of_a_report_is_weighted():
    tables, y = views_and_classes()
    weights = np.where(np.arange(60) < 30, 3.0, 1.0)
    model = MKFDA(RBF()).fit(tables, y, weights)
    data = summarize(model, tables, y, sample_weight=weights)
    expected = view_importance(model, tables, y, sample_weight=weights, n_resamples=0)
    assert data["importance"]["score"] == pytest.approx(expected.score)
    assert data["judged"]["scores"][0]["value"] == pytest.approx(expected.score)


def test_a_training_score_is_never_given():
    """An SVM has no left-out answers; its training samples are known by their support vectors."""
    tables, y = views_and_classes()
    data = summarize(svc(), parts(tables, slice(40)), y[:40], importance=False)
    assert "judged" not in data
    assert "these are training samples" in data["not_computed"][0]
    assert data["answers"][1]["answer"] == "Not scored"


@pytest.mark.parametrize(
    ("params", "why"),
    [
        pytest.param({"reg": "joint"}, "joint λ", marks=pytest.mark.slow),
        ({"denoise": Denoise(0.9)}, "axes of all samples"),
    ],
)
def test_left_out_answers_that_are_not_honest_are_not_used(params, why):
    X, y = IRIS
    data = summarize(MKFDA(RBF(), p=1, **params).fit(X, y), X, y, importance=False)
    assert "judged" not in data, why


def test_training_samples_among_new_ones_are_left_aside():
    tables, y = views_and_classes()
    model = MKFDA(RBF()).fit(parts(tables, slice(40)), y[:40])
    judged = summarize(model, parts(tables, slice(30, 60)), y[30:])["judged"]
    assert judged["n_samples"] == 20
    assert judged["how"] == "20 new samples; 10 rows of X equal to training samples left out"
    fresh = parts(tables, slice(40, 60))
    assert judged["scores"][0]["value"] == pytest.approx(model.score(fresh, y[40:]))


def test_training_samples_in_another_order_are_not_mistaken():
    X, y = IRIS
    model = MKFDA(RBF()).fit(X[:140], y[:140])
    for rows in (slice(139, None, -1), slice(0, 70)):
        data = summarize(model, X[rows], y[rows], importance=False)
        assert "judged" not in data
        assert "in their order" in data["not_computed"][0]


def test_some_training_samples_of_a_model_that_keeps_only_some_are_not_judged():
    """Those that are no support vectors look like new ones."""
    tables, y = views_and_classes()
    half = summarize(svc(), parts(tables, slice(20)), y[:20], importance=False)
    assert "judged" not in half
    assert "Pass new=True or new=False" in half["not_computed"][0]
    fresh = summarize(svc(), parts(tables, slice(40, 60)), y[40:])
    assert fresh["judged"]["how"] == "20 new samples"
    told = summarize(svc(), parts(tables, slice(20)), y[:20], new=True)
    assert told["judged"]["n_samples"] == 20


@pytest.mark.parametrize("kind", ["array", "stack"])
def test_precomputed_kernels_of_the_training_samples_are_known(kind):
    tables, y = views_and_classes()
    stack = KernelStack.from_arrays([RBF().fit(X)(X) for X in tables.values()])
    X = np.array(stack) if kind == "array" else stack
    model = MKFDA("precomputed").fit(X, y)
    known = summarize(model, X, y, importance=False)
    assert "left out" in known["judged"]["how"]
    np.testing.assert_allclose(known["alignment"]["matrix"], stack.alignment(centered=True))
    new = summarize(model, X[:7], y[:7], importance=False)
    assert new["judged"]["how"] == "7 new samples"


def test_where_nothing_tells_whether_samples_are_new_the_caller_does():
    X, y = IRIS
    model = MKFDA(RBF(), approximation=RandomFeatures(20, random_state=0)).fit(X, y)
    unknown = summarize(model, X, y)
    assert "judged" not in unknown
    assert any("new=True or new=False" in remark for remark in unknown["not_computed"])
    told = summarize(model, X, y, new=False, importance=False)
    assert "left out" in told["judged"]["how"]


def test_numbers_are_judged_by_their_errors():
    data = reported("values").data
    tables, _ = views_and_classes()
    values = tables["strong"][:, 0]
    model = MKRidge(RBF()).fit(parts(tables, slice(40)), values[:40])
    said = model.predict(parts(tables, slice(40, 60)))
    (target,) = data["judged"]["targets"]
    assert target["scores"][0]["value"] == pytest.approx(r2_score(values[40:], said))
    np.testing.assert_allclose(target["points"], np.column_stack([values[40:], said]))


def test_scores_lie_in_their_intervals_and_losses_above_zero():
    """Classes far apart: nearly all log losses are nothing, and one of them is large."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = 8.0 * y[:, None] + rng.normal(size=(40, 2))
    y[0] = 1
    data = summarize(MKFDA(RBF()).fit(X, y), X, y, importance=False)
    accuracy, loss = (data["judged"]["scores"][k] for k in (0, 2))
    assert (accuracy["name"], loss["name"]) == ("accuracy", "log loss")
    assert 0.0 < loss["low"] < loss["value"] < loss["high"]
    assert 0.0 < accuracy["low"] < accuracy["value"] < accuracy["high"] < 1.0


def test_classes_that_the_model_does_not_know_are_errors():
    X, y = IRIS
    model = MKFDA(RBF()).fit(X[:100:2], y[:100:2])
    judged = summarize(model, X[1::2], y[1::2])["judged"]
    assert [one["name"] for one in judged["classes"]] == ["0", "1", "2"]
    assert judged["classes"][2]["recall"] == 0.0
    assert judged["scores"][0]["value"] == pytest.approx(model.score(X[1::2], y[1::2]))


def test_many_classes_show_their_largest_confusions():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(25), 4)
    X = np.column_stack([y + 0.4 * rng.standard_normal(100), rng.standard_normal(100)])
    judged = summarize(MKFDA(RBF()).fit(X[::2], y[::2]), X[1::2], y[1::2])["judged"]
    assert "confusion" not in judged
    assert all(one["true"] != one["predicted"] for one in judged["confusions"])


def test_novelties_are_counted_among_new_samples():
    X, _ = IRIS
    model = MKOneClassSVM(RBF(), nu=0.2).fit(X[:50])
    data = summarize(model, X[50:])
    assert data["judged"]["scores"][0]["value"] == np.mean(model.predict(X[50:]) == -1)
    assert "judged" not in summarize(model, X[:50])


def test_calibrated_probabilities_lie_on_the_diagonal():
    rng = np.random.default_rng(0)
    chances = rng.random(20_000)
    happened = rng.random(20_000) < chances
    bins = calibration(chances, happened, np.ones(len(chances)))
    assert len(bins) == 10
    assert sum(one["n"] for one in bins) == 20_000
    assert all(abs(one["said"] - one["happened"]) < 0.03 for one in bins)
    assert all(one["low"] <= one["happened"] <= one["high"] for one in bins)
    assert calibration(chances[:29], happened[:29], np.ones(29)) == []


# -- importance ------------------------------------------------------------------------------


def test_importance_of_a_small_problem_is_measured():
    data = reported("plain").data
    first = data["importance"]["rows"][0]
    assert first["view"] == "strong"
    assert first["needed"]
    assert not data["importance"]["rows"][1]["needed"]
    assert data["answers"][0]["answer"] == "strong"
    assert "Without strong, accuracy falls by" in data["answers"][0]["detail"]


def test_a_result_of_view_importance_is_taken_as_it_is():
    tables, y = views_and_classes()
    model = MKSVC(RBF()).fit(tables, y)
    result = view_importance(model, tables, y, n_resamples=2, cv=2)
    data = summarize(model, importance=result)
    assert data["importance"]["score"] == result.score
    assert data["importance"]["method"] == "2 folds held out"
    # The score of all views, with its interval, says how good the model is.
    assert data["answers"][1]["answer"].startswith(f"Accuracy {result.score:.3f}")


@pytest.mark.parametrize(
    ("estimator", "rows", "reason"),
    [
        pytest.param(
            MKFDACV(RBF(), ps=[2], regs=[1.0]),
            slice(60),
            "would search again",
            marks=pytest.mark.slow,
        ),
        (MKFDA(RBF()), slice(40), "these samples are new"),
    ],
)
def test_what_was_not_measured_is_said(estimator, rows, reason):
    tables, y = views_and_classes()
    model = estimator.fit(parts(tables, rows), y[rows])
    data = summarize(model, tables, y)
    assert "importance" not in data
    assert any(reason in remark for remark in data["not_computed"])


# -- the data --------------------------------------------------------------------------------


def found(data):
    return {one["name"]: one["found"] for one in data["data"]["checks"] if not one["good"]}


def test_checks_find_what_is_there_and_nothing_else():
    tables, y = views_and_classes()
    model = MKFDA(RBF(), missing="mean").fit(tables, y)
    assert found(summarize(model, tables, y, importance=False)) == {}
    rough = {name: table.copy() for name, table in tables.items()}
    rough["noise"][:, 1] = 7.0
    rough["noise"][5] = np.nan
    for table in rough.values():
        table[1] = table[0]
    labels = np.where(np.arange(60) < 57, "yes", "no")
    data = summarize(model, rough, labels, new=True)
    assert found(data) == {
        "Constant columns, noise": "1 column: 1",
        "Equal rows": "1 row with the same entries as another; equal rows count as one sample",
        "Small classes": "fewer than 5 samples of no",
    }
    lacking = {one["name"]: one["lacking"] for one in data["data"]["tables"]}
    assert lacking == {"strong": 0, "noise": 1}


def test_alignment_is_that_of_the_stack():
    tables, y = views_and_classes()
    model = MKFDA(RBF()).fit(tables, y)
    stack = model.union_(tables)
    data = reported("plain").data["alignment"]
    np.testing.assert_allclose(data["matrix"], stack.alignment(centered=True))
    tables["noise"][3] = np.nan
    model = MKFDA(RBF(), missing="mean").fit(tables, y)
    assert summarize(model, tables, y, importance=False)["alignment"]["n_rows"] == 59


def test_row_keys_are_equal_for_equal_rows_only():
    from scipy import sparse

    dense = np.array([[0.0, 1.0], [0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])
    for table in (dense, sparse.csr_array(dense), dense.astype(object)):
        keys = row_keys(table)
        assert keys[0] == keys[1]
        assert keys[0] != keys[3]
    assert row_keys(dense)[0] == row_keys(dense)[2]


@pytest.mark.parametrize("n_constant", [4, 5, 6])
def test_up_to_five_constant_columns_are_named(n_constant):
    X, y = IRIS
    X = np.column_stack([X, np.ones((len(X), n_constant))])
    model = MKFDA(RBF(), reg=1.0).fit(X, y)
    checks = report(model, X, y, importance=False).data["data"]["checks"]
    (message,) = [check["found"] for check in checks if check["name"] == "Constant columns"]
    assert ("and others" in message) == (n_constant > 5)
    assert ("8" in message) == (n_constant >= 5)


# -- bad input -------------------------------------------------------------------------------


def test_what_cannot_be_reported_is_refused():
    X, y = IRIS
    model = MKFDA(RBF(), max_iter=5).fit(X, y)
    with refused("a fitted estimator of this package"):
        report("model")
    with refused("the class MKFDA"):
        report(MKFDA)
    with refused("not fitted"):
        report(MKFDA())
    with refused("y without X"):
        report(model, y=y)
    with refused("150 rows, but y has 3"):
        report(model, X, y[:3])
    with refused('importance must be True, False, "auto"'):
        report(model, X, y, importance="all")
    with refused("importance=True needs the training samples"):
        report(model, importance=True)
    with refused("X in memory"):
        report(model, da.asarray(X), y)


def test_precomputed_stack_of_registry_is_judged_as_training():
    model = MKFDA("precomputed").fit(STACKED.data, np.arange(48) % 3)
    data = summarize(model, STACKED.data, np.arange(48) % 3, importance=False)
    assert data["data"]["tables"][0]["kind"] == "stack"
    assert data["judged"]["n_samples"] == 48
