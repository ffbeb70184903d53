"""The benchmark of columns measures what it says, on a few problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import columns
from benchmarks._command import with_environment


def test_a_few_problems(capsys):
    assert columns.main(["--quick", "--sets", "linear,times"]) == 0
    assert "MKRidge, Linear" in capsys.readouterr().out


@pytest.mark.parametrize("name", columns.SETS)
def test_a_page(name):
    found = columns.measure(columns.SETS[name][0], 2)
    assert 0.0 <= found["false"] <= 1.0
    assert found["power"] > 0.5
    text = columns.page(with_environment({name: {"settings": [found]}}))
    assert f"| {found['model']} | {found['method']} " in text


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "held by all."),
        ({"false": 0.11}, "MISSED by MKFDA, RBF with 20 columns."),
        ({"coverage": 0.89}, "MISSED by MKFDA, RBF with 20 columns."),
        ({"coverage": 0.99}, "MISSED by MKFDA, RBF with 20 columns."),
    ],
)
def test_bounds_that_are_missed_are_named(changed, expected):
    row = {"model": "MKFDA, RBF", "n_columns": 20, "false": 0.1, "coverage": 0.95}
    assert expected in columns.bounds([{**row, "coverage_true": None, **changed}])
    known = [{**row, "coverage_true": share, "method": "linear"} for share in (0.9, 0.8)]
    assert "the least coverage is 80%, of MKFDA, RBF with 20 columns" in columns.bounds(known)


@pytest.mark.parametrize("setting", columns.SETS["classes"], ids=lambda setting: setting.title)
def test_coefficients_of_classes_are_those_of_a_regression(setting):
    setting = replace(setting, n_columns=20)
    problem = columns.draw(setting, np.random.default_rng(0), 200_000)
    X = problem.X - problem.X.mean(axis=0)
    b = np.linalg.lstsq(X, problem.y - problem.y.mean(), rcond=None)[0]
    np.testing.assert_allclose(b, problem.coefficients, atol=0.01)


def test_columns_that_do_not_matter_tell_nothing_given_the_others():
    setting = columns.SETS["linear"][1]
    problem = columns.draw(setting, np.random.default_rng(0), 20_000)
    b = np.linalg.lstsq(problem.X, problem.y, rcond=None)[0]
    np.testing.assert_allclose(b[problem.matters], problem.coefficients[problem.matters], atol=0.1)
    assert np.abs(b[~problem.matters]).max() < 0.1
