"""ConvexLocalizedSVCCV and ConvexLocalizedSVRCV: the table, the choice, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.model_selection import KFold, StratifiedKFold

from manykernels import (
    MKSVCCV,
    MKSVRCV,
    ConvexLocalizedSVC,
    ConvexLocalizedSVCCV,
    ConvexLocalizedSVR,
    ConvexLocalizedSVRCV,
    KernelStack,
)
from manykernels.gating import GivenRegions, KernelRegions
from manykernels.inspection.study import without_search
from manykernels.kernels import RBF
from tests.estimators import registry
from tests.estimators.registry import PAIRS, STACK, X_TEST, X, Y, made, refused

# Fits with gates, or of many machines, take long.
pytestmark = pytest.mark.slow

VALUES = registry.SHARED_TARGETS["values"]
GRID = {"regions": [1, 2, 3], "sharpness": [0.5, 4.0], "ps": [1.0, 2.0], "Cs": [0.1, 10.0]}
VALUE_GRID = {**GRID, "ps": [1.5], "epsilons": [0.1, 0.3]}
PLAIN_GRID = {"ps": [1.0, 2.0], "Cs": [0.1, 1.0, 10.0]}
SIDES = [("a", RBF(1.0).on([1])), ("b", RBF(1.0).on([2])), ("place", RBF(0.3).on([0]))]


def sided(n, seed=0):
    """Labels that follow one column on the left, another one on the right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    X[:, 0] += np.where(rng.uniform(size=n) < 0.5, -2.0, 2.0)
    return X, np.where(X[:, 0] < 0, X[:, 1], X[:, 2])


def with_regions(params):
    """Parameters of a point as those of the estimator that is given its regions."""
    return {
        "regions": params["n_regions"],
        **{k: v for k, v in params.items() if k != "n_regions"},
    }


# -- one region ------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"multi_class": "separate", "loss": "squared_hinge"}])
def test_one_region_is_plain_weights(options):
    expected = MKSVCCV(PAIRS, cv=3, **PLAIN_GRID, **options).fit(X, Y)
    kind = type("ConvexLocalizedSVCCV", (ConvexLocalizedSVCCV,), options)
    model = made(kind, PAIRS, regions=[1], sharpness=[8, 2], cv=3, **PLAIN_GRID).fit(X, Y)
    # Sharpness plays no part: the same scores at both, the smaller one is reported.
    curve = model.validation_curve()
    assert curve.shape == (1, 2, 2, 3)
    for own in curve[0]:
        assert_array_equal(own, expected.validation_curve())
    assert (model.n_regions_, model.sharpness_) == (1, 2.0)
    assert isinstance(model.n_regions_, int)
    assert (model.p_, model.C_) == (expected.p_, expected.C_)
    assert model.best_score_ == expected.best_score_
    for method in ("decision_function", "predict_proba"):
        found, known = (getattr(one, method)(X_TEST) for one in (model, expected))
        assert_allclose(found, known, rtol=1e-9, atol=1e-9)
    assert_array_equal(model.memberships(X_TEST), 1.0)


def test_regression_with_one_region_is_plain_weights():
    options = {"ps": [1.0, 2.0], "epsilons": [0.05, 0.2], "cv": 3}
    expected = MKSVRCV(PAIRS, **options).fit(X, VALUES)
    model = made(ConvexLocalizedSVRCV, PAIRS, regions=[1], sharpness=[1.0], **options).fit(
        X, VALUES
    )
    assert_array_equal(model.validation_curve()[0, 0], expected.validation_curve())
    assert (model.p_, model.C_, model.epsilon_) == (expected.p_, expected.C_, expected.epsilon_)
    assert_allclose(model.predict(X_TEST), expected.predict(X_TEST), rtol=1e-9, atol=1e-9)


# -- brute force -----------------------------------------------------------------------------


def table_of_scores(model, plain, targets, splits, **options):
    """Scores of all splits and points by fits to the training parts alone."""
    found = []
    for train, test in splits:
        inner, block = STACK[np.ix_(train, train)], STACK[np.ix_(test, train)]
        for params in model.cv_results_["params"]:
            alone = made(plain, "precomputed", **with_regions(params), **options)
            found.append(alone.fit(inner, targets[train]).score(block, targets[test]))
    return np.reshape(found, (len(splits), -1))


def scores_of_splits(model):
    return np.array([model.cv_results_[f"split{k}_test_score"] for k in range(model.n_splits_)])


@pytest.mark.parametrize(
    ("targets", "options"),
    [
        (Y, {"normalize": "trace"}),
        (Y == 0, {"class_weight": "balanced", "normalize": "spherical"}),
    ],
    ids=["three classes", "two classes"],
)
def test_a_point_has_the_scores_of_machines_learnt_by_hand(targets, options):
    splits = list(StratifiedKFold(2, shuffle=True, random_state=0).split(X, targets))
    options = {**options, "tol": 1e-6}
    model = made(ConvexLocalizedSVCCV, "precomputed", cv=splits, **GRID, **options).fit(
        STACK, targets
    )
    expected = table_of_scores(model, ConvexLocalizedSVC, targets, splits, **options)
    assert_allclose(scores_of_splits(model), expected)
    assert model.cv_results_["rel_gap"].max() <= model.tol


def test_regression_has_the_scores_of_machines_learnt_by_hand():
    splits = list(KFold(2).split(X))
    model = made(ConvexLocalizedSVRCV, "precomputed", cv=splits, tol=1e-9, **VALUE_GRID)
    model.fit(STACK, VALUES)
    expected = table_of_scores(model, ConvexLocalizedSVR, VALUES, splits, tol=1e-9)
    assert_allclose(scores_of_splits(model), expected, atol=1e-4)


def test_regions_are_found_once_for_each_number_and_split(monkeypatch):
    asked = []
    find = KernelRegions.fit_part

    def noted(self, *given):
        asked.append(self.n_regions)
        return find(self, *given)

    monkeypatch.setattr(KernelRegions, "fit_part", noted)
    model = made(ConvexLocalizedSVCCV, PAIRS, cv=2, **GRID).fit(X, Y)
    assert asked == [2, 3, 2, 3, model.n_regions_]


# -- the fit ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ConvexLocalizedSVCCV, ConvexLocalizedSVRCV])
def test_the_final_machine_is_a_fit_with_the_choice(kind):
    grid, targets, plain = (
        (GRID, Y, ConvexLocalizedSVC)
        if kind is ConvexLocalizedSVCCV
        else (VALUE_GRID, VALUES, ConvexLocalizedSVR)
    )
    model = made(kind, PAIRS, cv=2, **grid).fit(X, targets)
    chosen = {name: getattr(model, f"{name}_") for name in model.cv_results_["params"][0]}
    alone = made(plain, PAIRS, **with_regions(chosen)).fit(X, targets)
    assert_array_equal(model.weights_, alone.weights_)
    assert_array_equal(model.predict(X_TEST), alone.predict(X_TEST))
    assert_array_equal(model.memberships(X_TEST), alone.memberships(X_TEST))
    assert model.regions_.n_regions == model.n_regions_
    found, expected = (
        {**each.get_params(deep=False), "regions": each.regions.get_params()}
        for each in (without_search(model, model), alone)
    )
    assert found == expected | {name: getattr(model, name) for name in ("tol", "kernels")}


def test_orders_and_jobs_change_nothing():
    one = made(ConvexLocalizedSVCCV, PAIRS, cv=2, tol=1e-6, **GRID).fit(X, Y)
    turned = {name: values[::-1] for name, values in GRID.items()}
    other = made(ConvexLocalizedSVCCV, PAIRS, cv=2, tol=1e-6, n_jobs=2, **turned).fit(X, Y)
    assert_allclose(one.validation_curve(), np.flip(other.validation_curve()), atol=1e-9)
    for name in ("n_regions_", "sharpness_", "p_", "C_"):
        assert getattr(one, name) == getattr(other, name)


def test_regions_are_chosen_where_kernels_matter_in_different_places():
    (X, signs), (new, new_signs) = sided(200), sided(1000, seed=1)
    options = {"ps": [1.0], "Cs": [1.0, 10.0], "cv": 3}
    places = {"regions": [1, 2], "sharpness": [0.5, 8.0]}
    plain = MKSVCCV(SIDES, **options).fit(X, signs > 0)
    model = made(ConvexLocalizedSVCCV, SIDES, **places, **options).fit(X, signs > 0)
    assert (model.n_regions_, model.sharpness_) == (2, 8.0)
    assert model.score(new, new_signs > 0) > plain.score(new, new_signs > 0) + 0.03
    options = {"ps": [1.0], "Cs": [10.0], "epsilons": [0.1], "cv": 3}
    values, new_values = np.sin(4 * signs), np.sin(4 * new_signs)
    plain = MKSVRCV(SIDES, **options).fit(X, values)
    model = made(ConvexLocalizedSVRCV, SIDES, **places, **options).fit(X, values)
    assert model.n_regions_ == 2
    assert model.score(new, new_values) > plain.score(new, new_values)


def test_labels_of_noise_are_no_better_predicted_by_regions():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.integers(2, size=80)
    options = {"regions": [1, 2], "sharpness": [2.0], "Cs": [0.1, 1.0]}
    kind = type("Simplest", (ConvexLocalizedSVCCV,), {"one_standard_error": True})
    model = made(kind, SIDES, **options).fit(X, y)
    assert model.n_regions_ == 1
    assert abs(model.predict_proba(rng.normal(size=(500, 3)))[:, 0] - 0.5).mean() < 0.2
    values = made(ConvexLocalizedSVRCV, SIDES, epsilons=[0.1], **options).fit(
        X, rng.normal(size=80)
    )
    assert values.best_score_ < 0.1


def test_of_equal_scores_the_fewest_regions_are_chosen():
    """Also if there are not as many regions as asked for, or their shares are all equal."""
    x = np.repeat([-1.0, 1.0], 6)[:, None]
    options = {"ps": [2.0], "Cs": [1.0], "cv": 3}
    model = made(ConvexLocalizedSVCCV, RBF(1.0), regions=[5, 2, 1], **options).fit(x, x[:, 0] > 0)
    assert (model.n_regions_, model.best_score_) == (1, 1.0)
    options = {"ps": [1.0], "epsilons": [0.1], "Cs": [1.0], "sharpness": [0.0], "cv": 2}
    few = made(ConvexLocalizedSVRCV, PAIRS, regions=[3, 2, 1], tol=1e-9, **options).fit(X, VALUES)
    assert_allclose(few.validation_curve().ravel(), few.best_score_, atol=1e-5)


def test_validation_sets():
    train, held = np.arange(0, 48, 2), np.arange(1, 48, 2)
    model = made(ConvexLocalizedSVCCV, PAIRS, cv=(X[held], Y[held]), **GRID).fit(
        X[train], Y[train]
    )
    for params, score in zip(
        model.cv_results_["params"], model.cv_results_["split0_test_score"], strict=True
    ):
        alone = made(ConvexLocalizedSVC, PAIRS, **with_regions(params)).fit(X[train], Y[train])
        assert alone.score(X[held], Y[held]) == score


def test_verbose_prints_the_regions(capsys):
    options = {"regions": [1, 2], "sharpness": [1, 2], "ps": [2], "Cs": [1.0], "cv": 2}
    made(ConvexLocalizedSVCCV, PAIRS, verbose=True, **options).fit(X, Y)
    printed = capsys.readouterr().out
    assert "split 1/2  n_regions 2  sharpness 1  p 2  C 1" in printed
    assert printed.count("n_regions 1") == 4


# -- bad input -------------------------------------------------------------------------------

NO_NUMBERS = "regions must be a non-empty list of whole numbers, each at least 1; got"
NO_REGIONS = r"regions must be a number of regions, KernelRegions\(...\) or GivenRegions\(...\)"
NO_SHARPNESSES = "sharpness must be a non-empty list of numbers, each at least 0"


@pytest.mark.parametrize("kind", [ConvexLocalizedSVCCV, ConvexLocalizedSVRCV])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({"regions": regions}, NO_NUMBERS)
            for regions in ([0], [1, -2], [], KernelRegions([0]), KernelRegions([True]))
        ),
        *(
            ({"regions": regions}, NO_REGIONS)
            for regions in ([1.5], "x", [[1, 2]], [True], ["a"], [1, [2, 3]], None, KMeans(2))
        ),
        ({"regions": [KMeans(2)]}, NO_REGIONS),
        ({"regions": GivenRegions(KMeans(2))}, "are found from kernels, not given.*GridSearchCV"),
        ({"regions": [2, 2]}, "n_regions has equal values"),
        ({"sharpness": [-1.0]}, NO_SHARPNESSES),
        ({"sharpness": [np.nan]}, NO_SHARPNESSES),
        ({"sharpness": []}, NO_SHARPNESSES),
        ({"sharpness": [1, 1]}, "sharpness has equal values"),
        ({"sharpness": "x"}, "'sharpness' parameter of KernelRegions"),
        ({"ps": [0.5]}, "ps must be a non-empty list of numbers, each at least 1"),
        ({"Cs": [0.0]}, "Cs must be a non-empty list of numbers, each positive"),
        ({"random_state": "seed"}, "'random_state' parameter of KernelRegions"),
    ],
    ids=str,
)
def test_bad_input(kind, options, message):
    with refused(message):
        made(kind, PAIRS, **options).fit(X, VALUES if kind is ConvexLocalizedSVRCV else Y)


def test_regions_that_give_each_sample_to_one():
    options = {"sharpness": [np.inf], "ps": [2.0], "Cs": [1.0], "cv": 2}
    model = made(ConvexLocalizedSVCCV, PAIRS, regions=[2], **options).fit(X, Y)
    assert set(model.memberships(X_TEST).ravel()) == {0.0, 1.0}


def test_kernels_that_are_not_positive_definite_fail_where_they_matter():
    v = np.where(np.arange(48) % 2, 1.0, -1.0) / np.sqrt(48)
    kernel = RBF(0.3).fit(X)(X) - 5.0 * np.outer(v, v)
    stack = KernelStack.from_arrays([kernel], psd="ignore")
    options = {"regions": [1, 2], "ps": [2], "Cs": [1e3], "normalize": None}
    with refused("No point of the grid could be solved.*not positive"):
        made(ConvexLocalizedSVCCV, "precomputed", **options).fit(stack, Y)
