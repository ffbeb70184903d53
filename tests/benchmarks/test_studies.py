"""Real data with published results: intervals, the code that is shown, the page."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats

from benchmarks import _data, studies, survival
from benchmarks._tables import measured_with
from manykernels.survival import survival_array

STUDY = {
    "environment": measured_with(),
    "n_train": 80,
    "n_test": 20,
    "n_classes": 2,
    "n_of_importance": 50,
    "accuracies": [0.9, 1.0],
    "seconds": 1.5,
    "importance": {"a": [0.1, 0.05, 0.15], "b": [0.0, -0.02, 0.02]},
}


def test_interval_of_a_share():
    """Wilson's formula, written out."""
    z, share, n = stats.norm.ppf(0.975), 0.9, 50
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    width = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    expected = (100 * (middle - width), 100 * (middle + width))
    assert studies.interval_of_share(45, n) == pytest.approx(expected)


def test_interval_of_a_mean_is_wider_than_that_of_independent_values():
    values = [0.90, 0.92, 0.94, 0.91]
    low, high = studies.interval_of_mean(values, 80, 20)
    ordinary = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    # The variance is 1/4 + 20/80 of that of one value, instead of 1/4.
    assert high - low == pytest.approx(100 * np.sqrt(2) * (ordinary[1] - ordinary[0]))
    assert studies.interval_of_mean([0.98, 1.0], 80, 20)[1] == 100.0


def test_the_code_of_the_page_is_what_is_run(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    views = {"a": rng.normal(size=(60, 2)) + 3 * y[:, None], "b": rng.normal(size=(60, 2))}
    monkeypatch.setattr(_data, "mfeat", lambda: (views, y))
    study = studies.divided("mfeat", 2)
    assert (study["n_train"], study["n_test"], study["n_classes"]) == (48, 12, 2)
    assert len(study["accuracies"]) == 2
    assert min(study["accuracies"]) > 0.8
    assert study["importance"]["a"][0] > 0.2 > study["importance"]["b"][0]
    page = studies.page({"mfeat": {"environment": measured_with(), **study}})
    assert studies.CODE.format(name="mfeat", n_seeds=2) in page


def test_interval_of_means_of_cohorts():
    """Two equal cohorts have the variance of one, halved, and twice its degrees of freedom."""
    values = [0.60, 0.62, 0.64, 0.61]
    one = studies.interval_of_mean(values, 80, 20)
    low, high = studies.interval_of_means([values, values], 80, 20)
    ratio = stats.t.ppf(0.975, 6) / stats.t.ppf(0.975, 3) / np.sqrt(2)
    assert 100 * (high - low) == pytest.approx(ratio * (one[1] - one[0]))
    assert (low + high) / 2 == pytest.approx(np.mean(values))


def test_survival_is_measured_by_the_code_of_the_page(monkeypatch):
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(60, 2))
    time = np.exp(rng.normal(size=60) * 0.2 - signal[:, 0])
    target = survival_array((np.ones(60, bool), time))
    train = {"a": signal, "b": rng.normal(size=(60, 2))}
    reverse = survival_array((np.ones(60, bool), 1.0 / time))
    folds = {
        "blca": [(train, target, train, target)] * 2,
        "brca": [(train, target, train, truth) for truth in (target, reverse)],
    }
    for module in (studies, survival):
        monkeypatch.setattr(module, "cohort_folds", folds.__getitem__)
        monkeypatch.setattr(module, "COHORTS", ["blca", "brca"])
    study = studies.survival()
    assert study["indices"]["blca"] == [pytest.approx(0.95, abs=0.05)] * 2
    assert study["indices"]["brca"] == [
        study["indices"]["blca"][0],
        pytest.approx(1.0 - study["indices"]["blca"][0]),
    ]
    assert study["seconds"] > 0.0
    assert study["importance"]["a"][0] > 0.1 > study["importance"]["b"][0]


def test_the_page():
    breast = {k: v for k, v in STUDY.items() if k not in ("accuracies", "n_classes")}
    breast |= {"errors": {"mean": 1, "conditional": 2}}
    breast |= {"balanced": {"mean": 0.02, "conditional": 0.03}}
    indices = {"blca": [0.6, 0.7], "brca": [0.5, 0.6]}
    results = {"breast_tcga": breast, "scene15": {**STUDY, "accuracies": [0.75]}, "leaves": STUDY}
    results |= {"flowers": STUDY, "proteins": STUDY, "survival": {**STUDY, "indices": indices}}
    page = studies.page(results)
    low, high = studies.interval_of_share(15, 20)
    assert f"75.00 [{low:.1f}, {high:.1f}]" in page
    assert "drawn at random once" in page
    assert "drawn at random 2 times" in page
    assert "ECML 76.19" in page
    assert "none that we know" in page
    assert "makes 1 with" in page
    assert "| 0.600 [" in page
    assert "0.527 (genes), 0.653 (slides and genes)" in page
    assert "other features: 87.2" in page
    for name in ("flowers", "proteins", "survival"):
        assert studies.code_of(name, 2) in page
    assert len(studies.draw(results).axes) == 6
    assert "by the clock" not in page
    timed = studies.page({**results, "leaves": {**STUDY, "clock": 0.875}})
    assert "| 1.5 | – |" in re.sub(" +", " ", timed)
    assert "| 1.5 | 0.88 |" in re.sub(" +", " ", timed)


def test_time_by_the_clock_is_added_to_what_was_written(monkeypatch, capsys):
    """The code of one division runs; all else stays as it was."""
    ran, written = [], {}

    def load():
        ran.append("mfeat")
        y = np.arange(40) % 2
        return {"a": np.random.default_rng(0).normal(size=(40, 2)) + y[:, None]}, y

    monkeypatch.setattr(_data, "mfeat", load)
    monkeypatch.setattr(studies, "read_results", lambda name: {"mfeat": dict(STUDY)})
    monkeypatch.setattr(
        studies, "report", lambda name, parts, page, write, order: written.update(parts)
    )
    assert studies.main(["--clock", "--sets", "mfeat"]) == 0
    assert ran == ["mfeat"]
    found = written["mfeat"].pop("clock")
    assert 0.0 < found < 60.0
    assert written["mfeat"] == STUDY
    page = studies.page({"mfeat": {**STUDY, "clock": 2.25}})
    assert "| 1.5 | 2.2 |" in re.sub(" +", " ", page)
