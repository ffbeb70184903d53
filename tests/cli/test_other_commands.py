"""inspect, importance, compare and demo."""

import json

import pandas as pd
import pytest

import manykernels as mk
from tests.cli.conftest import BOTH


def test_inspect(folder, run):
    run("fit", *BOTH, "--output", "m.skops")
    code, out, err = run("inspect", "m.skops")
    assert (code, err) == (0, "")
    for word in ("MKFDACV", "a: ['x', 'y']", "b: ['age', 'site']", "certified", "a:linear"):
        assert word in out
    code, out, _ = run("inspect", "m.skops", "--json")
    assert code == 0
    found = json.loads(out)
    model = mk.load("m.skops")
    assert found["estimator"] == "MKFDACV"
    assert found["classes"] == ["ill", "well"]
    assert list(found["weights"]) == model.kernel_names_
    assert sum(found["weights"].values()) == pytest.approx(1.0)
    assert found["versions"]["manykernels"] == mk.__version__
    assert found["index"] == "id"


def test_importance(folder, run):
    code, out, _ = run("importance", *BOTH, "--resamples", "3", "--output", "table.csv")
    assert code == 0
    assert "fall without" in out
    table = pd.read_csv("table.csv").set_index("view")
    assert list(table.index) == ["a", "b"]
    assert table.loc["a", "fall"] > table.loc["b", "fall"]


@pytest.mark.slow
def test_compare(folder, run):
    options = (*BOTH, "--folds", "2", "--folder", "cells", "--output", "table.csv")
    code, out, _ = run("compare", *options)
    assert code == 0
    assert list(pd.read_csv("table.csv")["method"]) == [
        *("fisher", "sum", "only a", "only b", "constant", "linear", "boosting")
    ]
    finished = {path.name: path.stat().st_mtime_ns for path in (folder / "cells").rglob("*.json")}
    assert len(finished) == 14
    code, again, _ = run("compare", *options, "--force")
    assert code == 0
    assert again == out
    assert finished == {
        path.name: path.stat().st_mtime_ns for path in (folder / "cells").rglob("*.json")
    }


@pytest.mark.parametrize("command", ["importance", "compare"])
def test_groups(folder, run, command):
    few = ("--resamples", "0") if command == "importance" else ("--methods", "fisher")
    code, out, _ = run(command, *BOTH, *few, "--groups", "patients.csv:patient")
    assert code == 0
    assert "20 groups by 'patient'" in out
    assert "40 rows of 20 groups were kept together" in out


def test_compare_leaves_out_single_views_with_gaps(folder, run):
    options = ("--view", "a=a.csv", "--view", "b=gaps.csv", *BOTH[4:], "--missing", "mean")
    code, out, err = run("compare", *options, "--folds", "2", "--methods", "sum,single")
    assert code == 0
    assert "only a" in out
    assert "only b" not in out
    assert "view 'b' is not compared alone" in err


@pytest.mark.slow
def test_demo(folder, run, monkeypatch, one_point):
    code, out, _ = run("demo")
    assert code == 0
    made = folder / "manykernels-demo"
    names = {path.name for path in made.iterdir()}
    assert {"model.skops", "report.html", "digits.toml", "labels.csv", "rows.csv"} <= names
    assert "noise1" in out
    monkeypatch.chdir(made)
    for line in (line for line in out.splitlines() if line.startswith("  manykernels")):
        assert run(*line.split()[1:])[0] == 0
    assert len(pd.read_csv("predictions.csv")) == 30
    monkeypatch.chdir(folder)
    code, _, err = run("demo")
    assert code == 1
    assert "--force" in err
    assert run("demo", "--force")[0] == 0


def test_demo_replaces_nothing_of_others(folder, run):
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("years of work")
    code, _, err = run("demo", "--output", "mine", "--force")
    assert code == 1
    assert "was not written by demo" in err
    assert (folder / "mine" / "thesis.txt").read_text() == "years of work"
