"""Survival times, counts and logistic regression on the command line."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import manykernels as mk
from manykernels.kernels import Linear
from manykernels.metrics import concordance_index
from manykernels.reporting import html
from tests.cli.conftest import QUICK, N, clinic, frames

VIEWS = ("--view", "a=a.csv:x,y:linear", "--view", "b=b.csv:age:linear", "--index", "id")
SURVIVAL = ("--time", "clinic.csv:months", "--event", "clinic.csv:died")
COX = (*VIEWS, *SURVIVAL, *QUICK)
OUT = ("--output", "m.skops")
NEW = ("--view", "a=a_new.csv", "--view", "b=b_new.csv")


def python_model():
    """The model of Python, with new samples."""
    X, X_new = tables()
    y = clinic(frames()[0])[:N].astype({"died": bool})
    return mk.MKCoxCV(Linear(), ps=[2], regs=[1]).fit(X, y), X_new, y


def tables():
    """Views to learn from, and of new samples."""
    a, b, _ = frames()
    return ({"a": a[rows], "b": b[["age"]][rows]} for rows in (slice(N), slice(N, None)))


def read(path):
    return pd.read_csv(path, dtype={"id": str}).set_index("id")


@pytest.fixture
def fitted(folder, run):
    code, out, err = run("fit", *COX, *OUT, "--predictions", "left.csv")
    assert (code, err) == (0, "")
    return out


def test_risks_and_survival_are_those_of_python(fitted, run):
    same, X, _ = python_model()
    assert_allclose(mk.load("m.skops").weights_, same.weights_, rtol=1e-6)
    code, _, _ = run("predict", "m.skops", *NEW, "--at", "0,6.5,24", "--output", "new.csv")
    assert code == 0
    table = read("new.csv")
    assert list(table) == ["risk", "survival_0", "survival_6.5", "survival_24"]
    assert_allclose(table["risk"], same.predict(X), rtol=1e-5)
    curves = same.predict_survival_function(X)
    expected = [[curve(time) for time in (0.0, 6.5, 24.0)] for curve in curves]
    assert_allclose(table.iloc[:, 1:], expected, rtol=1e-5)
    assert_array_equal(table["survival_0"], 1.0)
    code, out, _ = run("predict", "m.skops", *NEW)
    assert out.splitlines()[0] == "id,risk"


def test_the_terminal_shows_the_concordance_of_samples_left_out(fitted, run):
    same, _, y = python_model()
    assert f"40 samples, {y['died'].sum()} with the event 'died', times 'months'" in fitted
    index = concordance_index(y["died"], y["months"], same.left_out_predictions_)
    shown = re.search(r"MKCoxCV: concordance index (\S+) \[(\S+), (\S+)\], (.*)", fitted)
    assert float(shown[1]) == pytest.approx(index, abs=5e-4)
    assert shown[4].startswith("40 training samples, held out in 5 folds")
    left = read("left.csv")
    assert list(left) == ["event", "time", "risk"]
    assert_allclose(left["risk"], same.left_out_predictions_, rtol=1e-5)
    assert_array_equal(left["event"], y["died"])
    # The report has the same numbers.
    page = html.report(mk.load("m.skops"), next(tables()), y, importance=False)
    score = page.data["judged"]["scores"][0]
    assert [f"{score[name]:.3f}" for name in ("value", "low", "high")] == list(shown.groups()[:3])


def test_inspect(fitted, run):
    code, out, _ = run("inspect", "m.skops", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["estimator"] == "MKCoxCV"
    assert found["scoring"] == "partial_likelihood"
    assert re.fullmatch(r"\S+ to \S+", found["times"])
    assert run("inspect", "m.skops")[0] == 0


def test_times_that_are_not_known(fitted, run):
    for at, code, said in [
        ("1e6", 1, "--at 1e+06 is too late: no training sample was observed beyond "),
        ("-1", 2, "--at must be times, such as 12 or 12,24,60; got '-1'"),
        ("", 2, "--at must be times"),
        ("12,nan", 2, "--at must be times"),
    ]:
        found, _, err = run("predict", "m.skops", *NEW, f"--at={at}")
        assert found == code
        assert said in err
    a, b, label = frames()
    X, _ = tables()
    mk.save(mk.MKFDACV(Linear(), ps=[2], regs=[1]).fit(X, label[:N]), "f.skops")
    code, _, err = run("predict", "f.skops", *NEW, "--at", "12")
    assert code == 2
    assert "--at is for survival times, and MKFDACV does not predict them" in err
    y = clinic(a)[:N].astype({"died": bool})
    strata = np.where(b["site"][:N] == "north", "n", "s")
    model = mk.MKCox(Linear(), reg=1.0).fit(X, y, strata=strata)
    mk.save(model, "s.skops")
    code, _, err = run("predict", "s.skops", *NEW, "--at", "12")
    assert code == 2
    assert "--at needs the strata of the new samples" in err
    assert "pass --strata with the name of their column" in err
    assert run("predict", "s.skops", *NEW)[0] == 0


@pytest.mark.parametrize(
    ("values", "option"),
    [
        pytest.param((1, 2), "=2", marks=pytest.mark.slow),
        (("0:LIVING", "1:DECEASED"), "=1:DECEASED"),
        pytest.param(("no", "yes"), "=yes", marks=pytest.mark.slow),
    ],
)
def test_the_value_of_an_event_may_be_named(folder, run, values, option):
    table = pd.read_csv("clinic.csv", dtype={"id": str})
    died = np.where(table["died"], values[1], values[0])
    table.assign(died=died).to_csv("coded.csv", index=False)
    event = f"coded.csv:died{option}"
    options = (*VIEWS, "--time", "coded.csv:months", "--event", event, *QUICK)
    assert run("fit", *options, *OUT)[0] == 0
    same, _, _ = python_model()
    assert_allclose(mk.load("m.skops").weights_, same.weights_, rtol=1e-6)
    code, _, err = run(
        "fit", *options[:-5], event.partition("=")[0], *QUICK, "--output", "n.skops"
    )
    assert code == 1
    assert f"such as --event coded.csv:died{option}." in err


def test_columns_of_a_view_are_no_features(folder, run):
    a, b, _ = frames()
    b[:N].join(clinic(a)).to_csv("both.csv")
    options = ("--view", "a=a.csv:x,y", "--view", "b=both.csv", "--index", "id", *QUICK, *OUT)
    assert run("fit", *options, "--time", "months", "--event", "died")[0] == 0
    assert list(mk.load("m.skops").X_fit_["b"].columns) == ["age", "site"]


def test_a_column_that_is_the_time_or_the_event_is_noted(folder, run):
    a, _, _ = frames()
    y = clinic(a)
    a[:N].assign(days=y["months"], dead=np.where(y["died"], "x", "o")[:N]).to_csv("leak.csv")
    code, _, err = run("fit", "--view", "a=leak.csv", "--index", "id", *SURVIVAL, *QUICK, *OUT)
    assert code == 0
    assert "column 'days' of view 'a' determines the target exactly" in err
    assert "column 'dead' of view 'a' determines the target exactly" in err


def test_a_specification(folder, run):
    text = (folder / "model.toml").read_text().replace('target = "label"', "")
    text = 'time = "clinic.csv:months"\nevent = "clinic.csv:died=1"\n' + text
    (folder / "sub").mkdir()
    for name in ("a.csv", "b.csv", "clinic.csv"):
        (folder / name).rename(folder / "sub" / name)
    (folder / "sub" / "cox.toml").write_text(text)
    code, out, err = run("fit", "--spec", "sub/cox.toml", *OUT)
    assert (code, err) == (0, "")
    assert "with the event 'died'" in out


def test_groups_missing_views_and_samples_without_a_time(folder, run):
    table = pd.read_csv("clinic.csv", dtype={"id": str})
    table.loc[[3, 7], "months"] = np.nan
    table.to_csv("holes.csv", index=False)
    options = ("--view", "a=a.csv:x,y", "--view", "b=gaps.csv", "--missing", "mean", *VIEWS[4:])
    times = ("--time", "holes.csv:months", "--event", "holes.csv:died")
    groups = ("--groups", "patients.csv:patient")
    code, out, err = run("fit", *options, *times, *groups, *QUICK, *OUT)
    assert code == 0
    assert "38 samples" in out
    assert "20 groups by 'patient'" in out
    assert "38 rows of 20 groups were kept together" in out
    assert "note: 2 samples without 'months' and 'died' are left out: '003', '007'." in err


# -- importance and compare ------------------------------------------------------------------


def test_importance_by_the_concordance_index(folder, run):
    code, out, _ = run("importance", *COX, "--resamples", "2", "--output", "table.csv")
    assert code == 0
    assert "concordance_index, 5 folds held out" in out
    same, _, y = python_model()
    index = concordance_index(y["died"], y["months"], same.left_out_predictions_)
    assert f"all views {index:.3f}" in out
    assert list(pd.read_csv("table.csv")["view"]) == ["a", "b"]


def test_compare_by_the_concordance_index(folder, run):
    code, out, _ = run("compare", *COX, "--folds", "2", "--output", "table.csv")
    assert code == 0
    table = pd.read_csv("table.csv")
    assert list(table["method"]) == ["cox", "sum", "only a", "only b"]
    assert "concordance_index" in out
    code, _, err = run("compare", *COX, "--methods", "fisher,sum")
    assert code == 2
    assert "fisher does not predict survival times, which the target has: choose cox." in err


# -- counts and logistic regression ----------------------------------------------------------


@pytest.fixture
def visits(folder):
    a, _, _ = frames()
    counts = np.random.default_rng(0).poisson(np.exp(1 + 0.5 * a["x"]))
    pd.DataFrame({"visits": counts}, a.index)[:N].to_csv("visits.csv")
    return counts[:N]


def test_counts(visits, run):
    options = (*VIEWS, "--target", "visits.csv:visits", *QUICK)
    code, out, _ = run("fit", *options, "--machine", "poisson", *OUT)
    assert code == 0
    assert f"counts from {visits.min()} to {visits.max()}" in out
    same = mk.MKGLMCV(Linear(), ps=[2], regs=[1]).fit(next(tables()), visits)
    assert f"MKGLMCV: D² {same.left_out_score_:.3f} [" in out
    assert_allclose(mk.load("m.skops").weights_, same.weights_, rtol=1e-6)


@pytest.mark.slow
def test_counts_are_compared_by_their_deviance(visits, run):
    options = (*VIEWS, "--target", "visits.csv:visits", *QUICK)
    code, out, _ = run("compare", *options, "--methods", "poisson,sum", "--folds", "2")
    assert code == 0
    assert out.count("D²") == 2
    code, out, _ = run("importance", *options, "--machine", "poisson", "--resamples", "0")
    assert code == 0
    assert "d2, 5 folds held out" in out


def test_logistic_regression(folder, run):
    options = (*VIEWS, "--target", "label", *QUICK, "--machine", "logistic")
    code, out, _ = run("fit", *options, *OUT)
    assert code == 0
    X, X_new = tables()
    same = mk.MKLogisticCV(Linear(), ps=[2], regs=[1]).fit(X, frames()[2][:N])
    assert_allclose(mk.load("m.skops").weights_, same.weights_, rtol=1e-6)
    assert "MKLogisticCV: accuracy" in out
    assert run("predict", "m.skops", *NEW, "--output", "new.csv")[0] == 0
    expected = same.predict_proba(X_new)
    assert_allclose(read("new.csv").iloc[:, 1:], expected, rtol=1e-5)


def test_equal_weights_are_of_the_first_machine(folder, run, monkeypatch):
    from manykernels.cli import commands

    made = {}
    monkeypatch.setattr(
        commands, "compared", lambda methods, *args, **kwargs: made.update(methods)
    )
    target = ("--target", "label", "--reg", "3")
    run("compare", *VIEWS, *target, "--methods", "svm,fisher,sum,single")
    kinds = {name: type(model).__name__ for name, model in made.items()}
    assert kinds == {
        "svm": "MKSVCCV",
        "fisher": "MKFDACV",
        "sum": "MKSVCCV",
        "only a": "MKSVCCV",
        "only b": "MKSVCCV",
    }
    assert made["fisher"].regs == [3.0]


# -- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([*SURVIVAL[:2]], 2, "--time needs --event, the column that tells whether the event was"),
        ([*SURVIVAL[2:]], 2, "--event needs --time, the column that has the time of the event"),
        ([*SURVIVAL, "--target", "label"], 2, "Pass either --target, or --time and --event"),
        ([*SURVIVAL, "--task", "regression"], 2, "--task does not apply to --time and --event"),
        ([*SURVIVAL, "--machine", "svm"], 2, "--machine does not apply to --time and --event"),
        ([*SURVIVAL, "--C", "1"], 2, "--C does not apply to --time and --event"),
        ([*SURVIVAL, "--approximation", "nystrom"], 2, "--approximation is for --machine fisher"),
        ([*SURVIVAL[:2], "--event", "clinic.csv:died="], 2, "ends with '=': write the value"),
        (["--time", "died", "--event", "died"], 2, "event and time are the same column, 'died'"),
        ([*SURVIVAL[:2], "--event", "lost"], 1, "No file has a column 'lost' of events; columns"),
        (
            ["--time", "clinic.csv:years", *SURVIVAL[2:]],
            1,
            "No file has a column 'years' of times; columns are 'id', 'months', 'died'",
        ),
        (
            ["--time", "clinic.csv:died", "--event", "clinic.csv:months"],
            2,
            "--time and --event seem to be exchanged: the values of 'died' are 0 and 1",
        ),
        (
            ["--time", "age", *SURVIVAL[2:]],
            2,
            "View 'b' has the time 'age' among its columns: remove it",
        ),
        (
            [*SURVIVAL[:2], "--event", "clinic.csv:died=7"],
            1,
            "column 'died' of 'clinic.csv' has no value '7'; its values are '0', '1'.",
        ),
        (["--target", "label", "--machine", "poisson"], 1, "must be numbers"),
        (
            ["--target", "clinic.csv:months", "--machine", "poisson"],
            1,
            "--machine poisson predicts counts, which are 0, 1, 2 and so on",
        ),
        (
            ["--target", "label", "--machine", "poisson", "--task", "regression"],
            2,
            "--machine poisson predicts counts, not a regression",
        ),
        (
            ["--target", "clinic.csv:months", "--machine", "logistic"],
            2,
            "logistic does not predict numbers, which the target has: choose fisher or svm",
        ),
    ],
)
def test_a_sentence(folder, run, arguments, code, said):
    before = sorted(folder.iterdir())
    found, _, err = run("fit", *VIEWS, *arguments, *OUT)
    assert found == code, err
    assert said in err
    assert len(err.splitlines()) == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("column", "row", "value", "said"),
    [
        ("months", 4, "-3", "column 'months' of 'odd.csv' is -3 in row 5 ('004'): times are"),
        ("months", 4, "inf", "column 'months' of 'odd.csv' is inf in row 5 ('004'): leave out"),
        ("months", 4, "a year", "'months' of 'odd.csv' is 'a year' in row 5 ('004'): times must"),
        ("died", 4, "2", "but column 'died' of 'odd.csv' has the values 0, 1, 2. Pass the value"),
        ("died", slice(None), "0", "column 'died' of 'odd.csv' has no events among 40 samples"),
        ("died", slice(None), "", "No sample has values of both 'months' and 'died'"),
        ("months", slice(None), "5", "All events are at one time, 5"),
    ],
)
def test_values_that_are_wrong(folder, run, column, row, value, said):
    table = pd.read_csv("clinic.csv", dtype=str)
    table.loc[row, column] = value
    if said.startswith("All"):
        table["died"] = "1"
    table.to_csv("odd.csv", index=False)
    times = ("--time", "odd.csv:months", "--event", "odd.csv:died")
    code, _, err = run("fit", *VIEWS, *times, *QUICK, *OUT)
    assert code == 1, err
    assert said in err
    assert len(err.splitlines()) == 1


def test_rows_without_names_are_counted_from_one(folder, run):
    table = pd.read_csv("clinic.csv", dtype=str)
    table.loc[2, "months"] = "-1"
    table[["months", "died"]].to_csv("odd.csv", index=False)
    view = ("--view", "a=a.csv:x,y", "--time", "odd.csv:months", "--event", "odd.csv:died")
    code, _, err = run("fit", *view, *QUICK, *OUT)
    assert code == 1
    assert "column 'months' of 'odd.csv' is -1 in row 3: times" in err


@pytest.mark.parametrize("name", ["censored", pytest.param("alive", marks=pytest.mark.slow)])
def test_columns_that_mean_the_opposite(folder, run, name):
    table = pd.read_csv("clinic.csv", dtype={"id": str})
    table[name] = 1 - table["died"]
    table.to_csv("odd.csv", index=False)
    times = ("--time", "odd.csv:months", "--event")
    code, _, err = run("fit", *VIEWS, *times, f"odd.csv:{name}", *QUICK, *OUT)
    assert code == 1
    assert f"such as --event odd.csv:{name}=0." in err
    assert run("fit", *VIEWS, *times, f"odd.csv:{name}=0", *QUICK, *OUT)[0] == 0
    same, _, _ = python_model()
    assert_allclose(mk.load("m.skops").weights_, same.weights_, rtol=1e-6)


def test_files_that_are_empty(folder, run):
    (folder / "odd.csv").write_text("")
    times = ("--time", "odd.csv:months", "--event", "odd.csv:died")
    code, _, err = run("fit", *VIEWS, *times, *OUT)
    assert code == 1
    assert "'odd.csv' cannot be read: it is empty" in err
    (folder / "odd.csv").write_text("id,months,died\n")
    code, _, err = run("fit", *VIEWS, *times, *OUT)
    assert code == 1
    assert "it has no rows" in err
