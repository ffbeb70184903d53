"""The comparison of the defaults: what it counts, and a small run from end to end."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine

from benchmarks import defaults
from benchmarks._contenders import CLASSIFIERS, REGRESSORS, Contender, Score, joined, measure
from benchmarks._default_sets import SETS
from benchmarks._tables import measured_with
from benchmarks.defaults import Results

OURS, THEIRS, WORSE = (
    Contender(name, make=dict, ours=name == "ours") for name in ("ours", "theirs", "worse")
)


def results(ours, theirs, n_views=2, name="mfeat"):
    """Made-up accuracies; a third contender is always behind."""
    accuracies = {OURS: ours, THEIRS: theirs, WORSE: [0.1] * len(theirs)}
    scores = {
        contender: [Score(value, 0.5, seconds) for value in values]
        for seconds, (contender, values) in enumerate(accuracies.items(), 1)
    }
    return Results(name, n_train=100, n_classes=3, n_views=n_views, scores=scores)


@pytest.mark.parametrize("name", ["wine", "diabetes"])
def test_a_small_run_from_end_to_end(name, capsys, monkeypatch):
    monkeypatch.setattr(defaults, "ROWS_QUICK", 120)
    assert defaults.main(["--quick", "--sets", name]) == 0
    shown = capsys.readouterr().out
    assert f"## {SETS[name].title}\n\n60 training rows" in shown
    for contender in CLASSIFIERS if name == "wine" else REGRESSORS:
        assert f"| {contender.name}" in shown
    assert ("log loss" in shown) == (name == "wine")


def test_missing_data_are_left_out(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert defaults.main(["--quick", "--sets", "sonar"]) == 1
    assert "Skipped: sonar." in capsys.readouterr().err


def numbers():
    X, y = load_wine(return_X_y=True)
    return {"first": X[:, :6], "others": X[:, 6:]}, y


def words():
    """Counts of words of which each class has some of its own."""
    rng = np.random.default_rng(0)
    y = np.arange(180) % 3
    rates = 0.2 + 0.6 * (np.arange(30) % 3 == y[:, None])
    return {name: sparse.csr_array(rng.poisson(rates) * 1.0) for name in "ab"}, y


@pytest.mark.parametrize("views", [numbers, words])
@pytest.mark.parametrize("contender", CLASSIFIERS, ids=lambda contender: contender.name)
def test_contenders_learn_from_views(contender, views):
    tables, y = views()
    rows = np.random.default_rng(0).permutation(len(y))
    score = measure(contender, tables, y, rows[:90], rows[90:])
    assert score.score > 0.85
    assert score.log_loss < 0.5
    assert score.seconds > 0


def test_views_are_joined_in_their_order():
    left, right = np.arange(6.0).reshape(3, 2), np.ones((3, 1))
    np.testing.assert_array_equal(joined({"a": left, "b": right}), np.hstack([left, right]))
    mixed = joined({"a": left, "b": sparse.csr_array(right)})
    np.testing.assert_array_equal(mixed.toarray(), np.hstack([left, right]))


@pytest.mark.parametrize("name", ["wine", "diabetes"])
def test_halves_do_not_overlap(name):
    data = SETS[name]
    _, y = data.loader()
    for train, test in data.splits(y, 100, 3):
        assert len(train) == len(test) == 50
        assert not set(train) & set(test)


def test_the_best_of_each_side_are_compared():
    one = results([0.9, 0.8], [0.7, 0.8])
    assert one.best(ours=False) is THEIRS
    np.testing.assert_allclose(one.differences, [20.0, 0.0])
    text = defaults.summary([one])
    assert "+10.0 ± 10.0" in text
    assert "held" in text


def test_verdicts():
    behind = results([0.78, 0.80], [0.80, 0.81], n_views=1, name="sonar")
    ahead = results([0.90, 0.92], [0.80, 0.81])
    lines = defaults.verdicts([behind, ahead])
    assert "more than one point behind the best of the others: Sonar (" in lines[0]
    assert "MISSED" in lines[0]
    assert "on 1 of 1 sets of several views (target: most, held)" in lines[1]
    (line,) = defaults.verdicts([results([0.9] * 2, [0.9] * 2, n_views=1)])
    assert line.endswith("behind the best of the others: none (target: none, held)")


def test_each_of_ours_is_compared_alone_and_ranked():
    one = results([0.78, 0.80], [0.80, 0.81], name="sonar")
    alone = Contender("MKFDACV", make=dict, ours=True)
    one.scores[alone] = [Score(0.5, 0.5, 1.0)] * 2
    (line,) = [line for line in defaults.verdicts([one]) if line.startswith("MKFDACV compared")]
    assert "from -30.5 to -30.5 points" in line
    assert "more than one behind on Sonar (target: at most two sets, held)" in line
    assert one.ranks() == {"ours": 2.0, "theirs": 1.0, "worse": 4.0, "MKFDACV": 3.0}
    assert "| theirs" in defaults.ranking([one]).splitlines()[2]
    one.n_classes = None
    ridge = Contender("MKRidgeCV", make=dict, ours=True)
    one.scores[ridge] = [Score(0.5, None, 1.0)] * 2
    lines = "\n".join(defaults.verdicts([one]))
    assert "others: 2.0; best: theirs, 1.0 (target: MKRidgeCV, MISSED)" in lines


def test_scores_are_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(defaults, "REGRESSORS", REGRESSORS[:1] + REGRESSORS[5:6])
    path = tmp_path / "scores.jsonl"
    first = defaults.measured("diabetes", 100, 2, path)
    monkeypatch.setattr(defaults, "measure", None)  # nothing is measured again
    again = defaults.measured("diabetes", 100, 2, path)
    assert len(path.read_text().splitlines()) == 4
    for contender in first.scores:
        np.testing.assert_array_equal(again.values(contender), first.values(contender))
        seconds = [scores.values(contender, "seconds") for scores in (first, again)]
        np.testing.assert_array_equal(*seconds)


def test_corrected_pvalue():
    differences = np.array([1.0, 2.0, 3.0, 2.0, 2.0])
    # Mean 2, variance 0.5, t = 2 / sqrt(0.5 * 1.2) on four degrees of freedom.
    assert defaults.corrected_pvalue(differences) == pytest.approx(0.0612, abs=1e-4)
    assert defaults.corrected_pvalue(np.zeros(5)) == 1.0
    assert defaults.corrected_pvalue(np.ones(5)) == 0.0


def test_times_are_relative_to_the_best_of_the_others():
    first = defaults.table(results([0.9] * 2, [0.8] * 2)).splitlines()[2]
    assert [cell.strip() for cell in first.split("|")[-3:-1]] == ["1", "0.5"]


def test_the_page_is_made_of_plain_values():
    one = results([0.9, 0.8], [0.7, 0.8])
    part = json.loads(json.dumps({"environment": measured_with(), **one.plain()}))
    again = Results.of("mfeat", part)
    assert again.plain() == one.plain()
    text = defaults.page({"mfeat": part})
    assert text.startswith("# Default settings\n\nWritten by `python -m benchmarks.defaults")
    assert "\n\nA difference is that of one of ours" in text
    assert "100 training rows, 3 classes, 2 divisions." in text


def test_log_losses_and_their_ranks():
    one = results([0.9, 0.8], [0.7, 0.8])
    one.scores[OURS] = [Score(0.9, 0.1, 1.0), Score(0.9, 0.3, 1.0)]
    lines = defaults.log_losses([one]).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[2:5]] for line in lines[2:]]
    assert cells == [["0.200", "0.500", "0.500"], ["1.0", "2.5", "2.5"]]


def test_times_of_machines():
    one, other = (results([0.9] * 2, [0.9] * 2, name=name) for name in ("mfeat", "sonar"))
    assert defaults.times([one]) == []
    for some, seconds in ((one, 3.0), (other, 1.0)):
        some.scores = {
            Contender("MKSVCCV", make=dict, ours=True): [Score(0.9, 0.1, seconds)] * 2,
            Contender("tuned SVC", make=dict): [Score(0.9, 0.1, 2.0)] * 2,
        }
    (line,) = defaults.times([one, other])
    assert "median 1.00, from 0.50 (Sonar) to 1.50 (Multiple Features)" in line
    assert "held" in line


def test_what_was_measured_in_the_last_run_is_told():
    one = results([0.9] * 2, [0.8] * 2)
    names = [contender.name for contender in one.scores]
    part = {**one.plain(), "environment": measured_with()}
    assert "Only" not in defaults.page({"mfeat": part})
    part["earlier"] = names[1:]
    assert f"Only {names[0]} were measured in the last run." in defaults.page({"mfeat": part})
    assert Results.of("mfeat", part).plain()["earlier"] == names[1:]
