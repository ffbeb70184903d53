"""column_importance: known columns, exact formulas, laws, and input of every kind."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from manykernels import (
    MKFDA,
    MKFDACV,
    MKGLM,
    MKSVC,
    MKSVR,
    MKCox,
    MKLogistic,
    MKRidge,
    MKRidgeCV,
    column_importance,
    report,
)
from manykernels.inspection.effects import discoveries, linear_effects, slope_p_values
from manykernels.kernels import RBF, Categorical, Laplacian, Linear, Polynomial

N = 120
RNG = np.random.default_rng(1)
X = RNG.standard_normal((N, 8)) * [1, 10, 1, 1, 0.1, 1, 1, 1] + 3.0
Y = 2.0 * X[:, 0] + 0.15 * X[:, 1] + RNG.standard_normal(N)
NAMES = [f"column {j}" for j in range(8)]
FRAME = pd.DataFrame(X, columns=NAMES)


def in_order(result, values):
    """Values of a result in the order of the columns of a table."""
    return np.asarray(values)[np.argsort(result.names)]


# -- linear effects -------------------------------------------------------------------------------


def least_squares(X, y, weights=None):
    """Effects per standard deviation, their standard errors and degrees of freedom."""
    weights = np.ones(len(y)) if weights is None else weights / weights.mean()
    Z = (X - np.average(X, axis=0, weights=weights)) / np.sqrt(
        np.cov(X.T, aweights=weights, ddof=0).diagonal()
    )
    F = np.column_stack([np.ones(len(y)), Z])
    inverse = np.linalg.inv(F.T @ (weights[:, None] * F))
    b = inverse @ (F.T @ (weights * y))
    degrees = len(y) - F.shape[1]
    noise = weights @ (y - F @ b) ** 2 / degrees
    return b[1:], np.sqrt(noise * inverse.diagonal()[1:]), degrees


@pytest.mark.parametrize("reg", [1e-3, 1.0, 100.0])
def test_effects_of_few_columns_are_those_of_least_squares(reg):
    result = column_importance(MKRidge(Linear(), reg=reg), X, Y, n_resamples=0)
    b, error, degrees = least_squares(X, Y)
    half = stats.t.isf(0.025, degrees) * error
    assert result.method == "linear"
    np.testing.assert_allclose(in_order(result, result.importance), b, rtol=1e-6)
    np.testing.assert_allclose(
        in_order(result, result.interval), np.column_stack([b - half, b + half]), rtol=1e-5
    )
    p_value = 2.0 * stats.t.sf(np.abs(b) / error, degrees)
    np.testing.assert_allclose(in_order(result, result.p_value), p_value, rtol=1e-4, atol=1e-12)


def test_effects_with_sample_weights_are_those_of_weighted_least_squares():
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, N)
    result = column_importance(MKRidge(Linear()), X, Y, n_resamples=0, sample_weight=weights)
    b, error, degrees = least_squares(X, Y, weights)
    # Errors are at least those of the jackknife, which does not take heavy rows for exact ones.
    root, F = np.sqrt(weights)[:, None], np.column_stack([np.ones(N), X])
    scale = np.sqrt(np.cov(X.T, aweights=weights, ddof=0).diagonal())
    without = [np.arange(N) != row for row in range(N)]
    refits = [np.linalg.lstsq((root * F)[k], root[k, 0] * Y[k])[0][1:] * scale for k in without]
    jackknife = np.sqrt((N - 1) / N * np.sum((np.array(refits) - b) ** 2, axis=0))
    assert np.any(jackknife > error)
    half = stats.t.isf(0.025, degrees) * np.maximum(error, jackknife)
    np.testing.assert_allclose(in_order(result, result.importance), b, rtol=1e-6)
    np.testing.assert_allclose(in_order(result, result.interval)[:, 1], b + half, rtol=1e-5)


def brute_force(Z, y, fixed, near, scale, noise, share):
    """Effect and standard error of the first column, by the formula of generalised least squares.

    The covariance does not contain the columns with fixed effects.
    """
    F = np.column_stack([np.ones(len(y)), Z[:, [0, *fixed, *near]]])
    rest = np.delete(Z, [0, *fixed, *near], axis=1)
    V = scale * share * rest @ rest.T + noise * np.eye(len(y))
    inverse = np.linalg.inv(F.T @ np.linalg.solve(V, F))
    b = inverse @ (F.T @ np.linalg.solve(V, y))
    residuals = y - F @ b
    degrees = len(y) - F.shape[1]
    spread = residuals @ np.linalg.solve(V, residuals) / degrees
    return b[1], np.sqrt(inverse[1, 1] * spread)


def test_effects_of_many_columns_are_those_of_a_mixed_model(monkeypatch):
    from manykernels.inspection import effects

    rng = np.random.default_rng(1)
    Z = rng.standard_normal((60, 40))
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    y = Z @ rng.standard_normal(40) * 0.3 + rng.standard_normal(60)
    K, shares = Z @ Z.T / 40, np.full(40, 1 / 40)
    kept = {}
    first = effects._first_effects

    def remembered(*arguments):
        kept["fixed"], kept["scale"], kept["noise"] = first(*arguments)
        kept["fixed"] = np.array([5, 7])
        return kept["fixed"], kept["scale"], kept["noise"]

    monkeypatch.setattr(effects, "_first_effects", remembered)
    found = linear_effects(Z, y, K, shares, np.ones(60))
    correlations = np.abs(Z.T @ Z[:, 0])
    correlations[[0, 5, 7]] = -1.0
    near = np.argsort(-correlations)[:10]
    b, error = brute_force(Z, y, [5, 7], near, kept["scale"], kept["noise"], 1 / 40)
    np.testing.assert_allclose([found.effect[0], found.error[0]], [b, error], rtol=1e-7)
    # Contrasts see the column itself and none of the fixed ones.
    np.testing.assert_allclose(found.contrasts[:, 0] @ y, b)
    np.testing.assert_allclose(
        found.contrasts[:, 0] @ Z[:, [0, 5, 7, *near]], [1] + [0] * 12, atol=1e-7
    )


def test_more_columns_than_can_be_compared_with_each_other(monkeypatch):
    from manykernels.inspection import effects

    rng = np.random.default_rng(2)
    table = rng.standard_normal((80, 100))
    y = 2.0 * table[:, 3] + rng.standard_normal(80)
    whole = column_importance(MKRidge(Linear()), table, y, n_resamples=0)
    monkeypatch.setattr(effects, "_MOST_COLUMNS", 50)
    cut = column_importance(MKRidge(Linear()), table, y, n_resamples=0)
    assert whole.names[0] == cut.names[0] == 3
    assert cut.selected.sum() == 1
    clear = in_order(cut, cut.p_value) < 0.04
    np.testing.assert_allclose(
        in_order(cut, cut.importance)[clear], in_order(whole, whole.importance)[clear], rtol=1e-6
    )


def test_effects_do_not_depend_on_units_or_on_the_order_of_columns():
    rng = np.random.default_rng(3)
    table = rng.standard_normal((60, 50))
    y = table[:, 0] + rng.standard_normal(60)
    kernel = Linear().after(StandardScaler())
    result = column_importance(MKRidge(kernel), table, y, n_resamples=0)
    order = rng.permutation(50)
    other = column_importance(MKRidge(kernel), 5.0 - 7.0 * table[:, order], y, n_resamples=0)
    expected = -in_order(result, result.importance)[order]
    np.testing.assert_allclose(in_order(other, other.importance), expected, rtol=1e-6)


def test_coefficients_are_those_of_the_model():
    result = column_importance(MKRidge(Linear()), X, Y, n_resamples=0)
    coef = MKRidge(Linear()).fit(X, Y).coef_
    np.testing.assert_allclose(in_order(result, result.coefficient), coef)


def test_effects_on_two_classes_are_those_on_the_probability():
    y = np.where(np.median(Y) < Y, "yes", "no")
    result = column_importance(MKSVC(Linear()), X, y, n_resamples=0)
    b = LinearRegression().fit(X, y == "yes").coef_ * X.std(axis=0)
    np.testing.assert_allclose(in_order(result, result.importance), b, rtol=1e-6)


def test_a_column_that_repeats_another_is_not_selected():
    table = np.column_stack([X, X[:, 0]])
    result = column_importance(MKRidge(Linear()), table, Y, n_resamples=0)
    rows = {row["column"]: row for row in result.rows()}
    assert not rows[0]["selected"]
    assert not rows[8]["selected"]
    together = column_importance(
        MKRidge(Linear()), table, Y, columns={"pair": [0, 8], "rest": [2, 3]}, n_resamples=0
    )
    assert dict(zip(together.names, together.selected, strict=True)) == {
        "pair": True,
        "rest": False,
    }


def test_constant_columns_have_no_effect():
    table = np.column_stack([X, np.full(N, 7.0)])
    for kernel in (Linear(), RBF()):
        result = column_importance(MKRidge(kernel), table, Y, n_resamples=0)
        row = next(row for row in result.rows() if row["column"] == 8)
        assert row["importance"] == 0.0
        assert row["p_value"] == 1.0


def test_samples_of_one_group_count_once():
    twice = np.repeat(np.arange(N), 2)
    noise = 1e-3 * np.random.default_rng(0).standard_normal((2 * N, 8))
    plain = column_importance(MKRidge(Linear()), X, Y, n_resamples=0)
    grouped = column_importance(
        MKRidge(Linear()), X[twice] + noise, Y[twice], groups=twice, n_resamples=0
    )
    width = np.ptp(in_order(plain, plain.interval), axis=1)
    assert np.all(np.ptp(in_order(grouped, grouped.interval), axis=1) > 0.75 * width)


def correlated(rng, n_rows, n_columns, rho=0.7):
    """Columns with correlations ρ^distance."""
    table = rng.standard_normal((n_rows, n_columns))
    for j in range(1, n_columns):
        table[:, j] = rho * table[:, j - 1] + np.sqrt(1.0 - rho**2) * table[:, j]
    return table


@pytest.mark.parametrize("n_columns", [20, 60, 200])
def test_known_columns_are_found_and_intervals_cover_their_effects(n_columns):
    coefficients = np.zeros(n_columns)
    coefficients[[2, 9, 15]] = [1.0, -1.0, 1.0]
    false, power, covered = [], [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        table = correlated(rng, 100, n_columns)
        y = table @ coefficients + rng.standard_normal(100)
        result = column_importance(MKRidge(Linear()), table, y, n_resamples=0)
        selected = in_order(result, result.selected)
        false.append((selected & (coefficients == 0)).sum() / max(selected.sum(), 1))
        power.append(selected[coefficients != 0].mean())
        low, high = in_order(result, result.interval).T
        truth = coefficients * table.std(axis=0)
        covered.append((low <= truth) & (truth <= high))
    assert np.mean(false) <= 0.1
    assert np.mean(power) > 0.8
    assert 0.92 < np.mean(covered) < 0.98
    assert 0.88 < np.mean(covered, axis=0)[coefficients != 0].mean() <= 1.0


def test_curved_effects_of_correlated_columns():
    false, power = [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        table = correlated(rng, 200, 15)
        y = table[:, 3] ** 2 + 2.0 * np.abs(table[:, 9]) + 0.5 * rng.standard_normal(200)
        result = column_importance(MKRidge(RBF("median"), reg=0.1), table, y, n_resamples=0)
        selected = in_order(result, result.selected)
        power.append(selected[[3, 9]].mean())
        false.append((selected.sum() - selected[[3, 9]].sum()) / max(selected.sum(), 1))
    assert np.mean(false) <= 0.1
    assert np.mean(power) > 0.8


# -- slopes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [RBF(), Polynomial(2), RBF() + Linear()], ids=str)
@pytest.mark.parametrize("model", [MKRidge, MKSVR])
def test_importance_is_the_mean_squared_slope(kernel, model):
    kernel = kernel.after(StandardScaler())
    result = column_importance(model(kernel), X, Y, n_resamples=0, method="derivative")
    fitted, steps = model(kernel).fit(X, Y), 1e-4 * X.std(axis=0)
    slopes = [
        (fitted.predict(X + step) - fitted.predict(X - step)) / 2e-4 for step in np.diag(steps)
    ]
    expected = np.sqrt(np.mean(np.square(slopes), axis=1))
    np.testing.assert_allclose(in_order(result, result.importance), expected, rtol=1e-5)


def test_slopes_of_linear_kernels_are_coefficients():
    result = column_importance(MKRidge(Linear()), X, Y, method="derivative", n_resamples=0)
    expected = np.abs(MKRidge(Linear()).fit(X, Y).coef_) * X.std(axis=0)
    np.testing.assert_allclose(in_order(result, result.importance), expected)


def test_importance_of_a_group_is_the_root_of_the_sum_of_squares():
    single = column_importance(MKRidge(RBF()), X, Y, n_resamples=0)
    pair = column_importance(MKRidge(RBF()), X, Y, columns={"pair": [0, 1]}, n_resamples=0)
    importance = in_order(single, single.importance)
    np.testing.assert_allclose(pair.importance, [np.hypot(*importance[:2])])


def test_curved_effects_and_interactions_are_selected():
    rng = np.random.default_rng(4)
    table = rng.standard_normal((250, 12))
    y = table[:, 0] ** 2 + 1.5 * table[:, 1] * table[:, 2] + 0.5 * rng.standard_normal(250)
    result = column_importance(MKRidge(RBF("median"), reg=0.1), table, y, n_resamples=10)
    assert set(np.array(result.names)[result.selected]) == {0, 1, 2}
    assert result.method == "derivative"
    low, high = result.interval.T
    assert np.all((low <= result.importance) & (result.importance <= high))


def test_slopes_confirmed_by_residuals():
    rng = np.random.default_rng(5)
    changes = rng.standard_normal((400, 3))
    residuals = 0.5 * rng.standard_normal(400)
    # The first change is in y and has not been removed by the model, the second is noise, the
    # third is the opposite of what the model says.
    residuals += changes[:, 0] - 2.0 * changes[:, 2]
    p_value = slope_p_values(changes, residuals, np.ones(400), None)
    assert p_value[0] < 1e-6
    assert p_value[2] > 0.99
    once = slope_p_values(
        np.repeat(changes, 2, 0),
        np.repeat(residuals, 2),
        np.ones(800),
        np.repeat(np.arange(400), 2),
    )
    np.testing.assert_allclose(once, p_value, rtol=1e-8)


# -- permutation ----------------------------------------------------------------------------------


def test_permutation_of_any_kernel():
    result = column_importance(MKRidge(Laplacian()), FRAME, Y, n_resamples=4)
    assert result.method == "permutation"
    assert result.scoring == "r2"
    assert set(np.array(result.names)[result.selected]) == {"column 0", "column 1"}
    assert result.stability[0] == 1.0


def test_permutation_of_categories_and_strings():
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(
        {"colour": rng.choice(["r", "g", "b"], 90), "noise": rng.choice(list("xy"), 90)}
    )
    y = np.where(frame["colour"] == "r", 1.0, 0.0) + 0.2 * rng.standard_normal(90)
    result = column_importance(MKRidge(Categorical()), frame, y, n_resamples=0)
    assert result.names[0] == "colour"
    assert result.selected.tolist() == [True, False]


def test_permutation_of_all_columns_loses_what_the_model_knows():
    result = column_importance(
        MKRidge(Linear(), reg=0.1),
        X,
        Y,
        method="permutation",
        columns={"all": range(8)},
        n_resamples=0,
    )
    # R² falls from nearly 1 − noise to about minus that: y and predictions are independent.
    assert 1.0 < result.importance[0] < 2.5


def test_a_sparse_table_is_permuted_as_a_dense_one():
    table = np.maximum(X, 3.0) - 3.0
    model, options = MKRidge(Laplacian()), {"n_resamples": 0, "n_repeats": 1}
    dense = column_importance(model, table, Y, **options)
    thin = column_importance(model, sparse.csr_array(table), Y, **options)
    assert dense.names == thin.names
    np.testing.assert_allclose(dense.importance, thin.importance, atol=1e-10)


def test_a_column_is_exchanged_between_rows_that_are_alike():
    from manykernels.inspection.column_data import Columns, columns_of
    from manykernels.inspection.importance import Begun
    from manykernels.inspection.permutation import Permutation

    rng = np.random.default_rng(7)
    table = rng.standard_normal((200, 3))
    table[:, 1] = table[:, 0] + 0.1 * rng.standard_normal(200)
    begun = Begun.of("f", MKRidge(Laplacian()), table, table[:, 0], None, None, None, 0)
    columns = Columns(begun, columns_of(begun, None))
    permutation = Permutation(columns, begun.learner, begun.rng)
    donors = permutation.donors(np.array([1]), 1)
    assert np.array_equal(np.sort(donors), np.arange(200))
    assert not np.any(donors == np.arange(200))
    assert np.std(table[donors, 1] - table[:, 0]) < 0.3


# -- estimators and input of every kind -----------------------------------------------------------


@pytest.mark.parametrize(
    "model", [MKFDA, MKSVC, MKLogistic, MKFDACV], ids=lambda model: model.__name__
)
@pytest.mark.parametrize("kernel", [Linear(), RBF()], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers(model, kernel, n_classes):
    y = np.digitize(Y, np.quantile(Y, np.arange(1, n_classes) / n_classes))
    kernel = kernel.after(StandardScaler())
    result = column_importance(model(kernel), X, y, n_resamples=2)
    assert 0 in result.names[:2]
    assert result.selected[:1].all()
    assert set(np.array(result.names)[result.selected]) <= {0, 1}


@pytest.mark.parametrize("model", [MKSVR, MKRidgeCV])
def test_regressors(model):
    result = column_importance(model(Linear()), X, Y, n_resamples=2)
    assert set(np.array(result.names)[result.selected]) == {0, 1}


def test_counts():
    rng = np.random.default_rng(0)
    y = rng.poisson(np.exp(0.5 * (X[:, 0] - 3.0)))
    result = column_importance(MKGLM(Linear()), X, y, n_resamples=2)
    assert result.names[0] == 0
    assert result.selected[0]


@pytest.mark.parametrize("kernel", [Linear(), RBF()], ids=str)
def test_survival_times(kernel):
    rng = np.random.default_rng(0)
    time = rng.exponential(np.exp(-1.5 * (X[:, 0] - 3.0)))
    y = pd.DataFrame({"event": rng.random(N) < 0.8, "time": time})
    kernel = kernel.after(StandardScaler())
    result = column_importance(MKCox(kernel), X, y, n_resamples=2)
    assert result.names[0] == 0
    assert result.selected[0]
    assert result.importance[0] > 0.0


def test_views_and_names():
    views = {"a": FRAME.iloc[:, :3], "b": FRAME.iloc[:, 3:].to_numpy()}
    result = column_importance(MKRidge(Linear()), views, Y, n_resamples=4)
    assert result.views[:2] == ["a", "a"]
    assert set(result.names[:2]) == {"column 0", "column 1"}
    assert result.labels[0].startswith("a: column")
    one = column_importance(MKRidge(Linear()), views, Y, columns={"b": None}, n_resamples=0)
    assert set(one.views) == {"b"}
    assert sorted(one.names) == [0, 1, 2, 3, 4]
    # The other view is taken into account.
    whole = {row["column"]: row["importance"] for row in result.rows() if row["view"] == "b"}
    alone = {row["column"]: row["importance"] for row in one.rows()}
    np.testing.assert_allclose(
        [whole[j] for j in range(5)], [alone[j] for j in range(5)], rtol=1e-6
    )


def test_the_method_depends_on_the_kernels_of_the_views_that_are_measured():
    views = {"a": X[:, :3], "b": X[:, 3:6], "c": X[:, 6:]}
    model = MKRidge({"a": Linear(), "b": RBF(), "c": Laplacian()})
    for view, method in (("a", "linear"), ("b", "derivative"), ("c", "permutation")):
        columns = {view: None}
        result = column_importance(model, views, Y, columns=columns, n_resamples=0)
        assert result.method == method
    assert column_importance(model, views, Y, n_resamples=0).method == "permutation"
    grouped = {"a": {"pair": [0, 1]}}
    assert (
        column_importance(model, views, Y, columns=grouped, n_resamples=0).method == "derivative"
    )


def test_sparse_tables_have_the_effects_of_dense_ones():
    table = np.maximum(X, 3.0)
    dense = column_importance(MKRidge(Linear()), table, Y, n_resamples=2)
    thin = column_importance(MKRidge(Linear()), sparse.csr_array(table), Y, n_resamples=2)
    np.testing.assert_allclose(thin.importance, dense.importance)
    np.testing.assert_allclose(thin.coefficient, dense.coefficient)


def test_the_same_seed_gives_the_same_result():
    first, second = (column_importance(MKRidge(RBF()), X, Y, n_resamples=4) for _ in range(2))
    np.testing.assert_array_equal(first.p_value, second.p_value)
    np.testing.assert_array_equal(first.stability, second.stability)


# -- result ---------------------------------------------------------------------------------------


def test_the_result_as_a_table():
    result = column_importance(MKRidge(Linear()), FRAME, Y, n_resamples=4)
    frame = result.to_frame()
    expected = ["importance", "low", "high", "p_value", "selected", "stability", "coefficient"]
    assert list(frame.columns) == expected
    assert frame.index[0] == "column 0"
    assert frame["p_value"].is_monotonic_increasing
    assert "2 of 8 columns selected" in str(result)
    assert result.n_top == 2
    assert result.false_stable == pytest.approx(4 / 6.4)


def test_long_results_are_cut():
    rng = np.random.default_rng(0)
    result = column_importance(
        MKRidge(Linear()), rng.standard_normal((40, 30)), rng.standard_normal(40), n_resamples=0
    )
    assert str(result).endswith("and 10 more")


def test_the_picture():
    result = column_importance(MKRidge(Linear()), FRAME, Y, n_resamples=4)
    figure = result.plot(n_columns=5)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == result.names[:5]


def test_a_section_of_the_report():
    model = MKRidge(Linear()).fit(FRAME, Y)
    page = report(model, FRAME, Y, columns=True, importance=False)
    assert page.data["columns"]["n_selected"] == 2
    assert "Importance of the columns" in page.html
    assert page.html.count(", selected</th>") == 2
    result = column_importance(model, FRAME, Y, n_resamples=0)
    assert report(model, FRAME, Y, columns=result).data["columns"]["rows"][0]["selected"]
    with pytest.raises(ValueError, match="columns must be True, False or the result"):
        report(model, FRAME, Y, columns="yes")


def test_discoveries_of_benjamini_and_hochberg():
    p_value = np.array([0.9, 0.001, 0.02, 0.011, 0.5])
    assert discoveries(p_value, 0.05).tolist() == [False, True, True, True, False]
    assert not discoveries(np.ones(4), 0.05).any()


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["none"]}, "cannot be selected"),
        ({"columns": {"pair": ["column 0", "none"]}}, "cannot be selected"),
        ({"columns": []}, "empty list"),
        ({"columns": {}}, "empty dict"),
        ({"method": "shap"}, "method must be one of 'auto', 'linear'"),
        ({"n_repeats": 0}, "n_repeats must be an integer, 1 or more"),
        ({"fdr": 1.0}, "fdr must be between 0 and 1"),
        ({"confidence": 2.0}, "confidence must be between"),
        ({"n_resamples": -1}, "n_resamples must be an integer"),
        ({"columns": {"a": ["column 0", "column 1"]}, "method": "linear"}, "not of groups"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        column_importance(MKRidge(Linear()), FRAME, Y, **options)


def test_views_that_do_not_exist():
    views = {"a": X[:, :3], "b": X[:, 3:]}
    with pytest.raises(ValueError, match="columns has a view 'c' that X does not have"):
        column_importance(MKRidge(Linear()), views, Y, columns={"c": None})
    with pytest.raises(ValueError, match="columns must be a dict from names of views"):
        column_importance(MKRidge(Linear()), views, Y, columns=[0])
    with pytest.raises(ValueError, match="view 'a': columns="):
        column_importance(MKRidge(Linear()), views, Y, columns={"a": [7]})


def test_kernels_that_a_method_does_not_take():
    with pytest.raises(ValueError, match=r'method="linear"|method=.linear. needs kernels'):
        column_importance(MKRidge(RBF()), X, Y, method="linear")
    with pytest.raises(ValueError, match=r"kernel 'laplacian' \(Laplacian\)"):
        column_importance(MKRidge(Laplacian()), X, Y, method="derivative")
    with pytest.raises(ValueError, match="Spherical"):
        column_importance(MKRidge(RBF(), normalize="spherical"), X, Y, method="derivative")
    result = column_importance(MKRidge(RBF(), normalize="spherical"), X, Y, n_resamples=0)
    assert result.method == "permutation"


def test_precomputed_kernels_have_no_columns():
    with pytest.raises(ValueError, match="needs the columns, which precomputed kernels"):
        column_importance(MKRidge("precomputed"), X @ X.T, Y)


def test_a_fitted_estimator_takes_the_columns_of_its_fit():
    model = MKRidge(Linear()).fit(FRAME, Y)
    with pytest.raises(ValueError, match="feature"):
        column_importance(model, FRAME.iloc[:, :5], Y)


def test_other_estimators_and_targets():
    with pytest.raises(ValueError, match="column_importance takes classifiers, regressors"):
        column_importance(LinearRegression(), X, Y)
    with pytest.raises(ValueError, match="column_importance requires y"):
        column_importance(MKRidge(Linear()), X, None)
    with pytest.raises(ValueError, match="one target at a time"):
        column_importance(MKRidge(Linear()), X, np.column_stack([Y, Y]))


def test_groups_are_those_of_samples():
    with pytest.raises(TypeError, match=r"pass groups of columns as columns="):
        column_importance(MKRidge(Linear()), X, Y, groups={"pair": [0, 1]})


def test_tables_without_information():
    with (
        pytest.warns(UserWarning, match="Nothing can be learnt"),
        pytest.raises(ValueError, match="All columns are constant"),
    ):
        column_importance(MKRidge([("a", Linear()), ("b", Linear())]), np.ones((N, 2)), Y)
    for kernel in (Linear(), RBF()):
        result = column_importance(MKRidge(kernel), X, np.ones(N), n_resamples=0)
        assert not result.selected.any()


def test_samples_that_lack_a_view():
    views = {"a": X[:, :3], "b": np.where(np.arange(N)[:, None] < 5, np.nan, X[:, 3:])}
    with pytest.raises(ValueError, match="5 of 120 lack some, the first at row 0"):
        column_importance(MKRidge(Linear(), missing="mean"), views, Y)


@pytest.mark.parametrize(("n_groups", "n_columns"), [(8, 4), (20, 4), (12, 40)])
def test_columns_of_a_few_groups_are_not_found_by_chance(n_groups, n_columns):
    # Half of the columns are the same in all rows of a group, and so is a part of y: as if there
    # were n_groups rows, whatever the number of rows.
    group = np.repeat(np.arange(n_groups), 6)
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        Z = rng.standard_normal((len(group), n_columns))
        Z[:, ::2] = rng.standard_normal((n_groups, n_columns))[group, ::2]
        Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
        y = rng.standard_normal(n_groups)[group] + 0.5 * rng.standard_normal(len(group))
        shares = np.full(n_columns, 1.0 / n_columns)
        K = Z @ Z.T / n_columns
        effects = linear_effects(Z, y - y.mean(), K, shares, np.ones(len(y)), group)
        found.append(effects.p_value < 0.05)
    assert np.mean(found) < 0.08
    assert np.mean(found, axis=0).max() < 0.2


def test_a_column_that_varies_in_one_group_only_says_nothing():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(10), 4)
    table = np.column_stack([group == 3, rng.standard_normal((40, 2))]).astype(float)
    y = 3.0 * table[:, 0] + table[:, 1] + 0.1 * rng.standard_normal(40)
    model = MKRidge(Linear())
    result = column_importance(model, table, y, groups=group, n_resamples=0)
    assert in_order(result, result.p_value).tolist()[0] == 1.0
    assert in_order(result, result.interval)[0].tolist() == [-np.inf, np.inf]
    assert in_order(result, result.selected).tolist() == [False, True, False]
    assert "+inf" in str(result)


@pytest.mark.parametrize("heavy", [1.0, 3.0, 10.0])
def test_weights_are_no_evidence_of_little_noise(heavy):
    # Rows that count more, as in a survey, are as noisy as others.
    found = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        weights = np.where(rng.random(80) < 0.2, heavy, 1.0)
        weights /= weights.mean()
        Z, y = rng.standard_normal((80, 4)), rng.standard_normal(80)
        Z -= weights @ Z / 80
        Z /= np.sqrt(weights @ Z**2 / 80)
        shares = np.full(4, 0.25)
        effects = linear_effects(Z, y - weights @ y / 80, Z @ Z.T / 4, shares, weights)
        found.append(effects.p_value < 0.05)
    assert np.mean(found) < 0.075


def test_a_column_of_a_weighted_row_is_that_of_the_row_repeated():
    counts = 1 + np.arange(N) % 3
    twice = np.repeat(np.arange(N), counts)
    model = MKRidge(Linear())
    weighted = column_importance(model, X, Y, sample_weight=counts, n_resamples=0)
    repeated = column_importance(model, X[twice], Y[twice], n_resamples=0)
    np.testing.assert_allclose(
        in_order(repeated, repeated.importance), in_order(weighted, weighted.importance), rtol=1e-5
    )
    widths = [np.ptp(in_order(one, one.interval), axis=1) for one in (weighted, repeated)]
    np.testing.assert_allclose(*widths, rtol=0.05)
