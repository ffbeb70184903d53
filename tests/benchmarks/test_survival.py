"""The comparison of survival models, on small data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks import survival
from benchmarks._tables import measured_with
from benchmarks.survival import (
    ALONE,
    COHORTS,
    ON_COHORTS,
    OURS,
    WITHOUT,
    ElasticNet,
    joined,
    measured,
    page,
)
from manykernels.survival import survival_array


def fold(n_samples=80, seed=0):
    """Views of which age and the first column of genes raise the risk."""
    rng = np.random.default_rng(seed)
    genes = pd.DataFrame(rng.normal(size=(n_samples, 6))).add_prefix("gene")
    clinic = pd.DataFrame(
        {"age": rng.normal(size=n_samples), "sex": rng.integers(2, size=n_samples)}
    )
    risk = 1.5 * clinic["age"] + 1.5 * genes["gene0"]
    time, end = rng.exponential(np.exp(-risk)), rng.exponential(2.0, n_samples)
    y = survival_array((time <= end, np.minimum(time, end)))
    half = slice(n_samples // 2), slice(n_samples // 2, None)
    first, second = ({"genes": genes[rows], "clinic": clinic[rows]} for rows in half)
    return first, y[half[0]], second, y[half[1]]


def test_contenders_are_given_their_views():
    results = measured([fold(160)], ON_COHORTS)
    indices = {name: values[0] for name, values in results["indices"].items()}
    assert (results["n_train"], list(indices)) == (80, [each.name for each in ON_COHORTS])
    assert min(indices.values()) > 0.6
    assert indices[OURS.name] > max(indices[WITHOUT.name], indices[ALONE.name])


def test_the_penalty_is_the_best_of_a_path():
    X, y, _, _ = fold(160)
    model = ElasticNet().fit(joined(X), y)
    assert model.alpha_ in model.model_[-1].alphas_
    assert list(joined(X))[-2:] == ["clinic:age", "clinic:sex"]


def test_a_small_run_from_end_to_end(capsys):
    assert survival.main(["--quick", "--sets", "veteran"]) == 0
    shown = capsys.readouterr().out
    assert "Training patients (events among them): veteran 109 (" in shown
    assert "| MKCoxCV" in shown
    assert "| Cox, elastic net" in shown


@pytest.mark.parametrize(("index", "held"), [(0.7, "held"), (0.6, "MISSED")])
def test_the_page_compares_the_mean_of_all_cohorts(index, held):
    names = [contender.name for contender in ON_COHORTS]
    cohort = {
        "environment": measured_with(),
        "n_train": 100,
        "n_events": 40,
        "indices": {name: [index] for name in names},
        "seconds": {name: [1.0] for name in names},
    }
    text = page(dict.fromkeys(COHORTS, cohort))
    assert f"Mean of MKCoxCV at least 0.675: {index:.3f}, {held}." in text
    assert "| published, genes" in text
    assert "published" not in page(dict.fromkeys(COHORTS[:2], cohort)).split("\n## ")[1]
