"""Tables, tests and pictures of comparisons, and ranks: hand-made cells, known answers."""

from __future__ import annotations

import builtins
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import (
    accuracy_score,
    get_scorer,
    get_scorer_names,
    make_scorer,
    zero_one_loss,
)

from manykernels import Comparison, compare
from manykernels.comparison import rank_methods
from manykernels.comparison.result import Cell
from manykernels.metrics import corrected_t_test
from manykernels.utils.folds import range_of
from tests.comparison.methods import ByColumn, labelled_table


def comparison(scores, design="resampled", n_train=80, n_test=20, scoring="accuracy", **options):
    """Of given scores (dict of lists), None where a method failed."""
    n_splits = len(next(iter(scores.values())))
    cells = {
        (name, k): Cell(failure="ValueError: no")
        if score is None
        else Cell({scoring: score}, fit_time=1.0 + k, predict_time=0.1)
        for name, values in scores.items()
        for k, score in enumerate(values)
    }
    split = (np.arange(n_train), np.arange(n_train, n_train + n_test))
    return Comparison(list(scores), [scoring], [split] * n_splits, design, cells, **options)


FIRST = [0.90, 0.92, 0.91, 0.95, 0.93]
SECOND = [0.88, 0.91, 0.90, 0.91, 0.92]
THIRD = [0.5, 0.52, 0.48, 0.51, 0.53]


# -- tests -----------------------------------------------------------------------------------


def test_the_t_test_by_hand():
    result = comparison({"a": FIRST, "b": SECOND})
    d = np.array(FIRST) - np.array(SECOND)
    t = d.mean() / np.sqrt((1 / 5 + 20 / 80) * d.var(ddof=1))
    assert result.p_values[0, 1] == pytest.approx(2 * stats.t.sf(t, 4), rel=1e-12)
    tests = result.tests()
    np.testing.assert_allclose(tests.differences, [[0, d.mean()], [-d.mean(), 0]], atol=1e-15)
    np.testing.assert_array_equal(tests.p_values, tests.p_values.T)
    assert tests.test == "corrected resampled t test (Nadeau and Bengio 2003)"


def test_with_few_test_samples_it_is_the_paired_t_test():
    result = comparison({"a": FIRST, "b": SECOND}, n_train=10**6, n_test=1)
    expected = stats.ttest_rel(FIRST, SECOND).pvalue
    assert result.p_values[0, 1] == pytest.approx(expected, rel=1e-4)


def test_the_f_test_by_hand():
    a, b = np.array([FIRST + THIRD, SECOND + THIRD[::-1]])
    result = comparison({"a": a.tolist(), "b": b.tolist()}, "5x2", 50, 50)
    p = (a - b).reshape(5, 2)
    f = (p**2).sum() / (2 * ((p - p.mean(axis=1, keepdims=True)) ** 2).sum())
    assert result.p_values[0, 1] == pytest.approx(stats.f.sf(f, 10, 5), rel=1e-12)
    assert result.tests().test == "combined 5×2 cv F test (Alpaydın 1999)"


def test_rounding_errors_are_no_differences():
    result = comparison({"a": FIRST, "b": [score * (1 + 1e-15) for score in FIRST]})
    assert result.p_values[0, 1] == 1.0


def test_one_split_has_no_test():
    result = comparison({"a": FIRST[:1], "b": SECOND[:1]})
    assert np.isnan(result.p_values[0, 1])
    assert "No paired test: there is only one split." in str(result)
    assert "± standard deviation over one split." in str(result)
    assert "0.900" in str(result)
    assert "no paired test" in str(result.tests())


def test_holm_counts_the_pairs():
    result = comparison({"a": FIRST, "b": SECOND, "c": THIRD})
    plain, corrected = result.tests(), result.tests(correction="holm")
    pairs = np.triu_indices(3, k=1)
    p = np.sort(plain.p_values[pairs])
    expected = np.maximum.accumulate(np.minimum(1, p * [3, 2, 1]))
    np.testing.assert_allclose(np.sort(corrected.p_values[pairs]), expected)
    np.testing.assert_array_equal(corrected.p_values, corrected.p_values.T)
    np.testing.assert_array_equal(np.diag(corrected.p_values), 1.0)
    assert "after Holm's correction for 3 pairs" in str(corrected)
    with pytest.raises(ValueError, match='"holm" or None'):
        result.tests(correction="bonferroni")


def test_the_table_tests_against_the_best_or_a_reference():
    result = comparison({"a": FIRST, "b": SECOND, "c": THIRD})
    p = result.p_values
    expected = np.maximum.accumulate(np.sort(p[0, 1:]) * [2, 1])
    found = [row["p_value"] for row in result.rows()]
    assert np.isnan(found[0])
    np.testing.assert_allclose(sorted(found[1:]), expected)
    against = result.versus("b")
    assert against.reference == "b"
    assert np.isnan(against.rows()[1]["p_value"])
    assert "against b, the reference" in str(against)
    assert "against a, the best" in str(against.versus(None))
    with pytest.raises(ValueError, match="no method 'd'; the methods are a, b, c"):
        result.versus("d")


def test_intervals_count_that_training_sets_overlap():
    result = comparison({"a": FIRST})
    half = stats.t.isf(0.05, 4) * np.std(FIRST, ddof=1) * np.sqrt(1 / 5 + 1 / 4)
    expected = [np.mean(FIRST) - half, np.mean(FIRST) + half]
    np.testing.assert_allclose(result.intervals(confidence=0.9)[0], expected)
    assert np.isnan(comparison({"a": FIRST[:1]}).intervals()).all()
    alone = comparison({"a": [0.9, 0.9]}).intervals()[0]
    np.testing.assert_allclose(alone, [0.9, 0.9], rtol=1e-15)
    assert corrected_t_test(FIRST, 0.25).interval(0.9) == pytest.approx(tuple(expected))


# -- tables ----------------------------------------------------------------------------------


def test_the_text():
    result = comparison({"a": FIRST, "bad <b>|*": [0.1, None, 0.2, None, 0.1]})
    lines = str(result).splitlines()
    assert re.split(r"\s{2,}", lines[0]) == [
        *["method", "accuracy", "p", "fit, s", "predict, s", "failed"]
    ]
    assert re.split(r"\s{2,}", lines[1]) == ["a", "0.922 ± 0.019", "best", "3", "0.1"]
    assert lines[2].endswith("  2")
    assert lines[-1] == "bad <b>|* failed on splits 1, 3: ValueError: no"
    assert repr(result) == str(result)


def test_markdown_and_html_are_escaped():
    result = comparison({"a": FIRST, "bad <b>|*": [0.1, None, 0.2, None, 0.1]})
    text = result.to_markdown()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    assert r"bad <b>\|\*" in rows[-1]
    html = result.to_html()
    assert "<b>" not in html
    assert "bad &lt;b&gt;|*" in html
    assert html.count("<tr>") == html.count("</tr>") == 3
    assert result._repr_html_() == html


def test_frames_have_the_numbers():
    result = comparison({"a": FIRST, "b": SECOND})
    frame = result.to_frame()
    assert list(frame.index) == ["a", "b"]
    assert frame.loc["a", "accuracy"] == pytest.approx(np.mean(FIRST))
    assert frame.loc["a", "accuracy_sd"] == pytest.approx(np.std(FIRST, ddof=1))
    assert frame.loc["b", "fit_time"] == 3.0
    assert frame["n_failed"].tolist() == [0, 0]


def test_frames_need_pandas(monkeypatch):
    original = builtins.__import__

    def without_pandas(name, *arguments, **options):
        if name == "pandas":
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match="rows"):
        comparison({"a": FIRST}).to_frame()


def test_methods_that_did_not_converge_are_reported():
    result = comparison({"a": FIRST})
    cells = {key: Cell({"accuracy": 1.0}, converged=key[1] > 1) for key in result.cells}
    result = Comparison(["a"], ["accuracy"], result.splits, "resampled", cells)
    assert "a: no certificate of convergence on 2 of 5 splits." in str(result)


def test_long_messages_are_cut_in_the_table_only():
    result = comparison({"a": FIRST, "b": [None] * 5})
    cells = {**result.cells, ("b", 0): Cell(failure="x" * 500)}
    result = Comparison(["a", "b"], ["accuracy"], result.splits, "resampled", cells)
    assert len(result.failures["b", 0]) == 500
    assert max(map(len, str(result).splitlines())) < 250
    assert "b failed on all splits: xxx" in str(result)


def test_unknown_scorings_are_refused():
    with pytest.raises(ValueError, match="no scoring 'r2'; choose one of accuracy"):
        comparison({"a": FIRST}).scores("r2")


# -- pictures --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scoring", "scores", "ends"),
    [
        ("accuracy", [1.0, 1.0, 0.9, 1.0, 0.95], (0.0, 1.0)),
        ("accuracy", [0.0, 0.05, 0.0, 0.0, 0.1], (0.0, 1.0)),
        ("neg_log_loss", [-0.01, -0.2, -0.02, -0.01, -0.02], (-np.inf, 0.0)),
        ("r2", [0.99, 0.9, 0.999, 0.6, 0.99], (-np.inf, 1.0)),
        ("matthews_corrcoef", [1.0, 0.7, 1.0, 1.0, 1.0], (-1.0, 1.0)),
    ],
)
def test_intervals_stay_in_the_range_of_the_score(scoring, scores, ends):
    assert range_of(get_scorer(scoring)) == ends
    free = comparison({"a": scores}, scoring=scoring)
    low, high = free.intervals()[0]
    assert low < ends[0] or high > ends[1]
    low, high = comparison({"a": scores}, scoring=scoring, ranges={scoring: ends}).intervals()[0]
    assert ends[0] <= low < np.mean(scores) < high <= ends[1]
    # Scores beyond it, such as percentages by a scorer of the same name, have no range.
    beyond = comparison({"a": [*scores[1:], 99.0]}, scoring=scoring)
    bounded = comparison({"a": [*scores[1:], 99.0]}, scoring=scoring, ranges={scoring: ends})
    np.testing.assert_array_equal(bounded.intervals(), beyond.intervals())


def test_scores_that_are_all_perfect_are_not_certain():
    """Five folds of twenty samples without an error tell as much as 44 independent samples."""
    low, high = comparison({"a": [1.0] * 5}, ranges={"accuracy": (0.0, 1.0)}).intervals()[0]
    n = 20 / (1 / 5 + 1 / 4)
    assert (low, high) == (pytest.approx(n / (n + stats.t.isf(0.025, 4) ** 2)), 1.0)


def test_compare_knows_the_range_of_scores():
    X, y = labelled_table()
    scoring = {"hits": "accuracy", "loss": make_scorer(zero_one_loss, greater_is_better=False)}
    scoring["own"] = lambda model, X, y: 7.0
    result = compare({"a": ByColumn(0), "b": ByColumn(-1)}, X, y, cv=3, scoring=scoring)
    assert result.ranges == {
        "hits": (0.0, 1.0), "loss": (-np.inf, 0.0), "own": (-np.inf, np.inf)
    }  # fmt: skip
    assert result.versus("b").ranges == result.ranges
    result = compare({"a": ByColumn(0)}, X, y, cv=3, scoring=make_scorer(accuracy_score))
    assert list(result.ranges.values()) == [(0.0, 1.0)]


def test_scores_of_scikit_learn_have_a_range():
    unknown = {name for name in get_scorer_names() if np.isinf(range_of(get_scorer(name))).all()}
    assert unknown == {"mutual_info_score", "positive_likelihood_ratio"}


def test_the_picture_shows_splits_means_and_intervals():
    result = comparison({"a": FIRST, "b": SECOND, "c": [None] * 5})
    ax = result.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]
    drawn = [line.get_xdata() for line in ax.lines]
    assert any(np.array_equal(data, SECOND) for data in drawn)
    (bar,) = ax.collections[0].get_segments()
    np.testing.assert_allclose(bar[:, 0], result.intervals()[0])
    assert "best" in ax.get_title(loc="left")


def test_the_picture_goes_where_it_is_told():
    fig, axes = plt.subplots(1, 2)
    assert comparison({"a": FIRST[:1]}).plot(axes[1]) is axes[1]
    assert not axes[0].lines
    fig.canvas.draw()


# -- ranks -----------------------------------------------------------------------------------


def of_means(**means):
    return comparison({name: [mean, mean] for name, mean in means.items()})


def test_ranks_by_hand():
    results = {
        "x": of_means(a=0.9, b=0.8, c=0.7),
        "y": of_means(a=0.9, b=0.8, c=0.8),
        "z": of_means(c=0.5, a=0.9, b=0.4),
        "w": of_means(a=0.8, b=0.9, c=0.7),
    }
    ranking = rank_methods(results)
    assert ranking.names == ["a", "b", "c"]
    expected = [[1, 2, 3], [1, 2.5, 2.5], [1, 3, 2], [2, 1, 3]]
    np.testing.assert_array_equal(ranking.ranks, expected)
    np.testing.assert_allclose(ranking.mean_ranks, [1.25, 2.125, 2.625])
    found = stats.friedmanchisquare(*np.array(expected).T)
    assert ranking.p_value == pytest.approx(found.pvalue)
    # q of three methods at 0.05 is 2.343 (Demšar 2006, Table 5).
    assert ranking.critical_difference == pytest.approx(2.343 * np.sqrt(3 * 4 / 24), rel=1e-3)
    assert str(ranking).splitlines()[1].split() == ["a", "1.25", "0.00", "1", "1", "1", "2"]
    assert ranking.to_markdown().count("\n| ") == 3


def test_a_method_that_failed_is_last():
    result = comparison({"a": [0.99, None], "b": [0.5, 0.5], "c": [0.4, 0.4]})
    np.testing.assert_array_equal(rank_methods([result, result]).ranks[0], [3, 1, 2])


def test_methods_of_some_sets_only_are_named():
    ranking = rank_methods([of_means(a=1.0, b=0.5, c=0.2), of_means(a=1.0, b=0.5)])
    assert ranking.left_out == {"c": ["set 1"]}
    assert "c is not ranked: it was compared on set 1 only." in str(ranking)
    assert np.isnan(ranking.p_value)


def test_equal_means_have_equal_ranks_in_any_order_of_the_splits():
    result = comparison({"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1], "c": [0.2, 0.2, 0.2 + 1e-9]})
    means = result.means()
    assert means[0] != means[1]
    np.testing.assert_array_equal(rank_methods([result, result]).ranks[0], [2.5, 2.5, 1])


def test_equal_methods_have_equal_ranks():
    ranking = rank_methods([of_means(a=0.5, b=0.5, c=0.5)] * 2)
    assert (ranking.statistic, ranking.p_value) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("comparisons", "options", "error", "message"),
    [
        ([], {}, ValueError, "comparisons is empty"),
        ([3], {}, TypeError, "set 1 is a int"),
        ([of_means(a=1.0)], {}, ValueError, "two methods that are in all"),
        ([of_means(a=1.0, b=0.5)], {"alpha": 2}, ValueError, "alpha must be between"),
        ([of_means(a=1.0, b=0.5)], {"scoring": "r2"}, ValueError, "no scoring 'r2'"),
    ],
)
def test_bad_ranks(comparisons, options, error, message):
    with pytest.raises(error, match=message):
        rank_methods(comparisons, **options)


def test_a_comparison_from_end_to_end_can_be_ranked():
    X, y = labelled_table()
    methods = {"perfect": ByColumn(0), "wrong": ByColumn(1), "constant": ByColumn(-1)}
    ranking = rank_methods({n: compare(methods, X, y, cv=3, random_state=n) for n in (1, 2)})
    assert ranking.mean_ranks[0] == 1.0
