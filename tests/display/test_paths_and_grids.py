"""Weights along a path, scores over a grid, gaps that close."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from manykernels import MKFDA, MKFDACV, MKSVC, LocalizedSVC, MKRidgeCV
from manykernels.display import ConvergenceDisplay, PathDisplay, ValidationDisplay
from manykernels.display.base import spread
from manykernels.gating import Sigmoid
from manykernels.model_selection import lp_path
from tests.estimators.registry import PAIRS, STACK, X, Y

NORMS = [1.0, 2.0, np.inf]


# -- paths -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def path():
    return lp_path(STACK, Y, ps=NORMS, regs=[0.1, 1.0, 10.0])


def test_lines_are_shares_along_p(path):
    display = PathDisplay.from_path(path, p=2.0, reg=1.0)
    shares = path.weights[:, 1] / path.weights[:, 1].sum(axis=1, keepdims=True)
    for line, share in zip(display.lines_, shares.T, strict=True):
        np.testing.assert_allclose(line.get_ydata(), share)
        np.testing.assert_array_equal(line.get_xdata(), [0, 1, 2])
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["1", "2", "∞"]
    (chosen,) = [line for line in display.ax_.lines if line not in display.lines_]
    assert chosen.get_xdata() == [1, 1]
    assert display.ax_.get_title(loc="left") == "Share of kernels in the weights (λ = 1)"
    named = {text.get_text() for text in display.ax_.texts}
    assert named == {"chosen", *path.kernel_names}


def test_lines_along_the_regularisation_are_on_a_logarithmic_axis(path):
    display = PathDisplay.from_path(path, along="reg", p=np.inf)
    assert display.ax_.get_xscale() == "log"
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), path.regs)
    np.testing.assert_allclose(display.lines_[0].get_ydata(), 1 / 3)
    assert "p = ∞" in display.ax_.get_title(loc="left")


def test_values_are_drawn_in_their_order_and_gaps_are_left():
    weights = np.array([[1.0, 3.0], [np.nan, np.nan], [1.0, 1.0]])
    display = PathDisplay([np.inf, 2.0, 1.0], weights, ["a", "b"]).plot()
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), [0.5, np.nan, 0.25])
    assert len(display.ax_.texts) == 2


def test_of_many_kernels_only_the_largest_have_names():
    weights = np.random.default_rng(0).random((4, 20))
    weights[2, [5, 11]] = 4.0
    names = [f"k{j}" for j in range(20)]
    display = PathDisplay([1, 2, 3, 4], weights, names).plot(top=2)
    assert {text.get_text() for text in display.ax_.texts} == {"k5", "k11"}
    assert "18 others in grey" in display.ax_.get_title(loc="left")


def test_a_path_with_several_regs_asks_for_one(path):
    with pytest.raises(
        ValueError, match=r"has 3 values of λ: pass the one to draw as reg, one of 0\.1, "
    ):
        PathDisplay.from_path(path)
    with pytest.raises(
        ValueError, match=r"λ = 5 is not one of the values of the path: 0\.1, 1, 10"
    ):
        PathDisplay.from_path(path, reg=5)
    with pytest.raises(ValueError, match="p = 7 is not one"):
        PathDisplay.from_path(path, reg=1.0, p=7)
    with pytest.raises(ValueError, match='along must be "p" or "reg"'):
        PathDisplay.from_path(path, along="C")
    with pytest.raises(ValueError, match=r"weights must be 2 × 1; got the shape \(3, 1\)"):
        PathDisplay([1, 2], np.ones((3, 1)), ["a"])


def test_names_are_apart_and_in_order():
    places = np.array([0.5, 0.5, 0.52, 0.1, 0.9])
    found = spread(places, 0.1)
    assert np.diff(np.sort(found)).min() >= 0.1 - 1e-12
    assert (np.argsort(found, kind="stable") == np.argsort(places, kind="stable")).all()
    assert found[[3, 4]].tolist() == [0.1, 0.9]
    np.testing.assert_allclose(found[:3].mean(), places[:3].mean())
    np.testing.assert_array_equal(spread([0.3, 0.7], 0.1), [0.3, 0.7])


# -- grids -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chosen():
    return MKFDACV("precomputed", ps=NORMS, regs=[0.01, 1.0, 100.0], cv=3).fit(STACK, Y)


def test_lines_are_mean_scores_with_standard_errors(chosen):
    display = ValidationDisplay.from_estimator(chosen)
    np.testing.assert_array_equal(display.scores, chosen.validation_curve())
    errors = chosen.cv_results_["se_test_score"].reshape(3, 3)
    for line, scores in zip(display.lines_, display.scores, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), scores)
    bars = [bar.get_segments() for bar in display.ax_.collections]
    lengths = [[(top - low)[1] / 2 for low, top in line] for line in bars]
    np.testing.assert_allclose(lengths, errors)
    assert display.line_names == ["p = 1", "p = 2", "p = ∞"]
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_xlabel() == "λ"


def test_the_chosen_point_is_ringed_and_one_standard_error_is_drawn(chosen):
    display = ValidationDisplay.from_estimator(chosen)
    i, k = display.chosen
    assert NORMS[i] == chosen.p_
    assert display.values[k] == chosen.reg_
    ring, level = display.ax_.lines[-1], display.ax_.lines[-2]
    np.testing.assert_array_equal(ring.get_ydata(), [chosen.best_score_])
    results = chosen.cv_results_
    best = np.argmax(results["mean_test_score"])
    expected = results["mean_test_score"][best] - results["se_test_score"][best]
    np.testing.assert_allclose(level.get_ydata(), expected)


def test_other_parameters_are_held_at_what_was_chosen():
    """A grid of three parameters, as localized estimators have."""
    shape = np.indices((2, 3, 2)).reshape(3, -1)
    grid = {"p": [1.0, np.inf], "C": [0.1, 1.0, 10.0], "penalty": [0.1, np.inf]}
    columns = {
        name: np.array(values)[places]
        for (name, values), places in zip(grid.items(), shape, strict=True)
    }
    points = zip(*columns.values(), strict=True)
    scores = np.random.default_rng(0).random(12)
    model = MKFDACV(scoring="roc_auc")
    vars(model).update(
        cv_results_={
            "params": [dict(zip(columns, one, strict=True)) for one in points],
            **{f"param_{name}": column for name, column in columns.items()},
            "mean_test_score": scores,
            "se_test_score": np.full(12, 0.1),
        },
        **{"p_": 1.0, "C_": 10.0, "penalty_": np.inf},
    )
    display = ValidationDisplay.from_estimator(model)
    table = scores.reshape(2, 3, 2)
    np.testing.assert_array_equal(display.scores, table[:, :, 1])
    assert display.chosen == (0, 2)
    assert display.caption == "penalty = ∞"
    assert display.ax_.get_title(loc="left").startswith("roc_auc (penalty = ∞; ring: chosen")
    display = ValidationDisplay.from_estimator(model, along="penalty", lines="C")
    np.testing.assert_array_equal(display.scores, table[0])
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["0.1", "∞"]
    with pytest.raises(ValueError, match="along must be one of p, C, penalty; got 'reg'"):
        ValidationDisplay.from_estimator(model, along="reg")
    with pytest.raises(ValueError, match="along and lines are both 'C'"):
        ValidationDisplay.from_estimator(model, along="C", lines="C")


def test_a_validation_set_has_no_standard_errors():
    options = {"ps": [2.0], "regs": [0.1, 1.0], "cv": (X[::2], X[::2, 0])}
    display = ValidationDisplay.from_estimator(MKRidgeCV(PAIRS, **options).fit(X, X[:, 0]))
    assert np.isnan(display.errors).all()
    assert "dashed" not in display.ax_.get_title(loc="left")
    assert display.line_names == ["p = 2"]


def test_those_that_have_not_chosen_are_refused():
    with pytest.raises(
        ValueError, match="MKFDA has no cv_results_: it does not use cross-validation"
    ):
        ValidationDisplay.from_estimator(MKFDA(PAIRS).fit(X, Y))
    with pytest.raises(NotFittedError):
        ValidationDisplay.from_estimator(MKFDACV())
    with pytest.raises(ValueError, match=r"scores must be 1 × 2, lines by values; got .*\(2, 2\)"):
        ValidationDisplay([1.0, 2.0], np.ones((2, 2)), np.ones((1, 2)), ["p = 1"])


def test_of_several_labels_one_is_drawn():
    labels = np.column_stack([Y == 0, Y == 1]).astype(int)
    model = MKFDACV(PAIRS, ps=[1.0, 2.0], regs=[1.0, 10.0], cv=2).fit(X, labels)
    with pytest.raises(ValueError, match="for each of 2 labels: pass the number of a label"):
        ValidationDisplay.from_estimator(model)
    display = ValidationDisplay.from_estimator(model, which=1)
    np.testing.assert_array_equal(display.scores, model.validation_curve()[1])
    assert display.values[display.chosen[1]] == model.reg_[1]
    shared = MKFDACV(PAIRS, ps=[2.0], regs=[1.0], cv=2, multi_label="shared").fit(X, labels)
    ValidationDisplay.from_estimator(shared)
    with pytest.raises(ValueError, match="one table of results: pass which=None, got which=1"):
        ValidationDisplay.from_estimator(shared, which=1)
    ConvergenceDisplay.from_estimator(model)


# -- convergence -----------------------------------------------------------------------------


def test_lines_are_gaps():
    models = {name: MKFDA(PAIRS, p=1.5, solver=name, tol=1e-4) for name in ("newton", "sip")}
    models = {name: model.fit(X, Y) for name, model in models.items()}
    display = ConvergenceDisplay.from_estimators(models)
    assert display.ax_.get_yscale() == "log"
    for name, model in models.items():
        (line,) = display.lines_[name]
        np.testing.assert_array_equal(line.get_xdata(), model.history_["n_inner_solves"])
        np.testing.assert_allclose(line.get_ydata(), np.maximum(model.history_["rel_gap"], 1e-16))
    assert [text.get_text() for text in display.ax_.texts] == ["newton", "sip", "tol = 10⁻⁴"]
    drawn = [one for lines in display.lines_.values() for one in lines]
    (tol,) = [line for line in display.ax_.lines if line not in drawn]
    assert set(tol.get_ydata()) == {1e-4}


def test_every_machine_has_a_line_and_no_gap_is_below_rounding():
    model = MKSVC(PAIRS, multi_class="separate").fit(X, Y)
    display = ConvergenceDisplay.from_estimator(model)
    lines = display.lines_["MKSVC"]
    assert len(lines) == 3
    assert sum(len(line.get_xdata()) for line in lines) == len(model.history_["rel_gap"])
    exact = {"a": {"n_inner_solves": [1, 2], "rel_gap": [1e-3, -1e-17]}}
    (line,) = ConvergenceDisplay(exact).plot().lines_["a"]
    assert line.get_ydata()[1] > 0


def test_a_gate_has_the_norm_of_its_gradient():
    model = LocalizedSVC(PAIRS, gating=Sigmoid(early_stopping=0, max_iter=3), tol=0.1).fit(X, Y)
    display = ConvergenceDisplay.from_estimator(model, name="gate")
    (line,) = display.lines_["gate"]
    np.testing.assert_array_equal(line.get_ydata(), model.history_["gradient_norm"])
    assert display.tols == {}
    with pytest.raises(ValueError, match="no measure in common"):
        ConvergenceDisplay.from_estimators({"gate": model, "fda": MKFDA(PAIRS).fit(X, Y)})


def test_those_without_a_history_are_refused():
    with pytest.raises(ValueError, match="SVC has no history_: it keeps no record"):
        ConvergenceDisplay.from_estimator(SVC().fit(X, Y))
    with pytest.raises(NotFittedError):
        ConvergenceDisplay.from_estimator(MKFDA())
    with pytest.raises(ValueError, match="as many n_inner_solves as rel_gap"):
        ConvergenceDisplay({"a": {"n_inner_solves": [1, 2], "rel_gap": [0.1]}})
    with pytest.raises(ValueError, match="at least one estimator"):
        ConvergenceDisplay({})
    with pytest.raises(ValueError, match="measure must be one of 'rel_gap', 'gradient_norm'"):
        ConvergenceDisplay({"a": {}}, measure="loss")
