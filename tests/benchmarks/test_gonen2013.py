"""The tables of Gönen and Alpaydın (2013): protocol, rows beside the paper, F tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import io

from benchmarks import _command, _data, gonen2013
from benchmarks import _gonen2013 as parts
from benchmarks._gonen2013_paper import PLACES, ROWS, STATEMENTS, WEIGHTS, Statement
from benchmarks._tables import ABOVE, BELOW, WITHIN
from manykernels.datasets import fetching
from manykernels.gating import Sigmoid, Softmax
from manykernels.kernels import Polynomial
from manykernels.kernels.transforms import preparation


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# -- figures of the paper ----------------------------------------------------------------------


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_compete_sum_to_one(name):
    for method, (_, _, weights) in WEIGHTS[name].items():
        assert method in ROWS[name]
        if "sigmoid" not in method:
            assert sum(weights) == pytest.approx(1, abs=1e-3)


def test_statements_are_about_methods_that_are_measured(monkeypatch):
    for name, listed in STATEMENTS.items():
        if name == "gauss4":
            methods = parts.EXPERIMENTS[name]().methods
            assert all({one.first, one.second} <= set(methods) for one in listed)
        assert all(one.outcome in (-1, 0, 1) for one in listed)


def test_places_exist():
    docs = Path(gonen2013.__file__).parents[1] / "docs" / "benchmarks"
    first = " ".join(line[0] for line in PLACES)
    for name in ["Fig. 1", "Table 1", "Tables 2, 3", "Tables 4–6", "Tables 8, 9", "Tables 10, 11"]:
        assert name in first
    for _, _, where in PLACES:
        if "](" in where:
            assert (docs / where.split("](")[1].split(")")[0]).exists()


def test_the_best_rule_for_the_printed_parameters(rng):
    X, y = parts.make_gauss4(200_000, random_state=rng)
    accuracy = 100 * np.mean(parts.densities(X).argmax(axis=1) == y)
    assert parts.bayes_rate(0.05) == pytest.approx(accuracy, abs=0.25)  # three deviations
    assert parts.bayes_rate(0.05) == pytest.approx(parts.bayes_rate(0.1), abs=0.02)


# -- kernels and the protocol ------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 3])
def test_kernels_have_unit_diagonal(rng, degree):
    X = rng.standard_normal((12, 3))
    train, other = np.arange(8), np.arange(8, 12)
    kernel = Polynomial(degree, gamma=1.0, coef0=float(degree > 1))
    whole = preparation("spherical", center=False).fit_transform(
        parts.KernelStack.from_arrays([kernel.fit(X)(X)])
    )
    block = parts.UnitKernel("X", degree).block({"X": X}, other, train)
    np.testing.assert_allclose(block, whole.kernel(0)[np.ix_(other, train)])


def test_a_row_of_zeros_has_no_direction():
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    rows = np.arange(2)
    block = parts.UnitKernel("X").block({"X": X}, rows, rows)
    np.testing.assert_allclose(block, [[0.0, 0.0], [0.0, 1.0]])


def test_five_times_two():
    y = np.repeat([0, 1], [20, 40])
    folds, test = parts.five_times_two(y, 0, classes=True)
    assert len(folds) == 10
    assert len(test) == 20
    for train, other in folds:
        assert sorted([*train, *other, *test]) == list(range(60))
        assert y[train].mean() == pytest.approx(2 / 3, abs=0.05)


def test_columns_are_scaled_by_the_training_part(rng):
    X = rng.standard_normal((10, 2)) + 5.0
    draw = parts.Draw({"X": X}, np.zeros(10), [], np.arange(3))
    train = np.arange(4, 10)
    scaled = draw.scaled("standardised", train)["X"]
    np.testing.assert_allclose(scaled[train].mean(axis=0), 0.0, atol=1e-12)
    assert abs(scaled[:4].mean()) > 1e-3
    np.testing.assert_array_equal(draw.scaled("as they are", train)["X"], X)


@pytest.fixture
def experiment(rng):
    y = np.arange(90) % 2
    X = rng.standard_normal((90, 3)) + y[:, None]

    def draw(seed):
        return parts.Draw({"X": X}, y, *parts.five_times_two(y, seed, classes=True))

    line = parts.UnitKernel("X")
    methods = {
        "SVM": parts.svc(line),
        "one copy": parts.lmkl(Softmax, [line], "X"),
        "two copies": parts.lmkl(Sigmoid, [line] * 2, "X"),
    }
    return parts.Experiment("SMALL: 90 samples", draw, methods, {"C": [0.1, 1.0]})


def test_one_copy_under_a_softmax_gate_is_the_plain_machine(experiment):
    found = gonen2013.measured(experiment, 1)["methods"]
    assert found["SVM"][0]["test"] == found["one copy"][0]["test"]
    assert found["SVM"][0]["support"] == found["one copy"][0]["support"]
    assert found["SVM"][0]["active"] == 1.0
    assert len(found["two copies"][0]["weights"]) == 2
    assert len(found["two copies"][0]["test"]) == 10


def test_models_are_those_with_the_best_validation(experiment, monkeypatch):
    def score(experiment, model, block, targets):
        return {0.1: 60.0, 1.0: 70.0}[model.C] + (len(targets) == 30)

    monkeypatch.setattr(gonen2013, "score", score)
    chosen = gonen2013.chosen(experiment, experiment.methods["SVM"], experiment.draw(0))
    assert chosen["chosen"] == [1.0]
    assert set(chosen["test"]) == {71.0}
    monkeypatch.setattr(gonen2013, "score", lambda *_: 50.0)
    tied = gonen2013.chosen(experiment, experiment.methods["SVM"], experiment.draw(0))
    assert tied["chosen"] == [0.1]


def test_parameters_can_be_chosen_on_some_of_the_validation_parts(experiment, monkeypatch):
    seen = []

    def score(experiment, model, block, targets):
        seen.append(model.C)
        return {0.1: 60.0, 1.0: 70.0}[model.C]

    monkeypatch.setattr(gonen2013, "score", score)
    method = replace(experiment.methods["SVM"], n_choosing=2)
    found = gonen2013.chosen(experiment, method, experiment.draw(0))
    # Of two folds both values, of the other eight the chosen one, each on two sets of samples.
    assert seen == [0.1, 0.1, 1.0, 1.0] * 2 + [1.0, 1.0] * 8
    assert found["chosen"] == [1.0]
    assert found["test"] == [70.0] * 10
    assert len(found["supports"]) == 10


def test_support_vectors_have_dual_variables_of_a_thousandth_of_the_penalty(experiment):
    rows = np.arange(90)
    method = experiment.methods["SVM"]
    draw = experiment.draw(0)
    block = method.block(draw.tables, rows, rows)
    model = method.estimator.set_params(C=1.0).fit(block, draw.targets)
    n_all = len(model.support_)
    assert gonen2013.n_support_vectors(model) <= n_all
    model.dual_coef_ = np.full(n_all, 9e-4)
    assert gonen2013.n_support_vectors(model) == 0
    model.C = 0.5
    assert gonen2013.n_support_vectors(model) == n_all


# -- rows beside the paper ---------------------------------------------------------------------


def part(methods, errors=False, title="MULTIFEAT: 2000 digits"):
    """A part of the results, with these test results of each method in each division."""
    drawn = {
        name: [
            {
                "test": list(test),
                "supports": [20.0] * len(test),
                "support": 20.0,
                "active": 2.0,
                "weights": [1 / 6] * 6,
                "steps": 3,
                "seconds": 1.0,
            }
            for test in divisions
        ]
        for name, divisions in methods.items()
    }
    n_draws = len(next(iter(methods.values())))
    facts = {"title": title, "scaling": "standardised", "n_draws": n_draws, "n_test": 1000}
    environment = {"versions": {"manykernels": "0"}, "machine": "m"}
    return {**facts, "errors": errors, "environment": environment, "methods": drawn}


def all_methods(name, value):
    return {
        method: [[value] * 10, [value + 1.0] * 10, [value - 1.0] * 10]
        for method in {
            *ROWS[name],
            *(one for s in STATEMENTS.get(name, []) for one in (s.first, s.second)),
        }
    }


def test_verdicts_go_both_ways():
    results = {"multifeat": part(all_methods("multifeat", 94.0))}
    rows = {row.method: row for row in gonen2013.value_rows(results, "multifeat")}
    assert rows["SVM (fac)"].outcome == WITHIN
    assert rows["SVM (mor)"].outcome == ABOVE
    assert rows["LMKL (sigmoid)"].outcome == BELOW
    # Divisions deviate by one: once for the paper, and once for the mean of our three.
    expected = np.sqrt(1.0 + 1.0 / 3.0 + 0.87**2 / 10.0)
    assert rows["SVM (fac)"].error == pytest.approx(expected)


def test_another_scaling_explains_a_row():
    results = {"multifeat": part(all_methods("multifeat", 94.0))}
    means = {"standardised": 94.0, "in [0, 1]": 69.0, "as they are": 48.0}
    draws = {scaling: [{"test": [mean]}] for scaling, mean in means.items()}
    results["scaling of multifeat"] = {"methods": {"SVM (mor)": draws}}
    rows = {row.method: row for row in gonen2013.value_rows(results, "multifeat")}
    assert "69.00 with columns in [0, 1]" in rows["SVM (mor)"].verdict
    assert rows["LMKL (sigmoid)"].verdict == "below, unexplained"


def test_another_scaling_explains_support_vectors_if_it_is_as_accurate():
    # The paper has 88.13 % and 33.62 % support vectors.
    results = {"multifeat": part(all_methods("multifeat", 88.0))}
    draws = {"in [0, 1]": [{"test": [88.0], "support": 34.0}] * 2}
    results["scaling of multifeat"] = {"methods": {"SVM (kar)": draws}}
    for i, draw in enumerate(results["multifeat"]["methods"]["SVM (kar)"]):
        draw["supports"] = [47.0 + i] * 10
    row = gonen2013.support_rows(results, "multifeat")[2]
    assert row.verdict == "below: 34.00 with columns in [0, 1], see the scaling of columns"
    draws["in [0, 1]"] = [{"test": [78.0], "support": 34.0}] * 2
    assert gonen2013.support_rows(results, "multifeat")[2].verdict == "below, unexplained"


def test_other_penalties_explain_a_row():
    # The paper has 88.13 % and 33.62 % support vectors.
    results = {"multifeat": part(all_methods("multifeat", 88.0))}
    draws = results["multifeat"]["methods"]["SVM (kar)"]
    for i, draw in enumerate(draws):
        draw["supports"] = [47.0 + i] * 10
        draw["grid"] = {
            "C = 1": {"validation": 88.0, "test": 88.0, "supports": 47.0 + i, "active": 1.0},
            "C = 10": {"validation": 87.0 + i, "test": 88.2, "supports": 33.0 + i, "active": 1.0},
        }
    row = gonen2013.support_rows(results, "multifeat")[2]
    assert row.method == "SVM (kar), support vectors"
    assert row.verdict == "below: 34.00 with C = 10, where the accuracy is 88.20"
    # Values that no division would choose are none.
    for draw in draws:
        draw["grid"]["C = 10"]["validation"] = 80.0
    assert gonen2013.support_rows(results, "multifeat")[2].verdict == "below, unexplained"


def test_the_tolerance_of_the_programs_explains_a_row():
    # The paper has 16.65 % support vectors.
    results = {"olivetti": part(all_methods("olivetti", 97.0), title="OLIVETTI: 400 faces")}
    found = {"LMKL (softmax, 4×4)": {"test": 98.0, "supports": 16.5, "steps": 100.0}}
    results["tolerance"] = {"n_draws": 2, "tol": 1e-3, "C": 10.0, "methods": found}
    rows = {row.method: row for row in gonen2013.support_rows(results, "olivetti")}
    verdict = rows["LMKL (softmax, 4×4), support vectors"].verdict
    assert verdict.startswith("below: 16.50 with C = 10 and the tolerance of the authors'")
    assert rows["LMKL (softmax, 16×16), support vectors"].verdict == "below, unexplained"
    found["LMKL (softmax, 4×4)"]["supports"] = 30.0
    rows = {row.method: row for row in gonen2013.support_rows(results, "olivetti")}
    assert rows["LMKL (softmax, 4×4), support vectors"].verdict == "below, unexplained"
    assert "the tolerance of the authors' programs" in gonen2013.tolerance_table(
        results["tolerance"]
    )


def test_errors_are_better_when_lower():
    results = {"concrete": part(all_methods("concrete", 46.0), errors=True, title="CONCRETE: 1")}
    rows = {row.method: row for row in gonen2013.value_rows(results, "concrete")}
    assert rows["SVR (q = 1)"].outcome == ABOVE
    assert rows["LMKL (softmax)"].outcome == WITHIN


def test_statements_by_the_f_test(rng):
    level = rng.normal(90.0, 1.0, (1, 10))
    better = level + 5.0 + rng.normal(0.0, 0.5, (1, 10))
    found = part({"a": better.tolist(), "b": level.tolist()})
    statement = Statement("Table 2", "a", "b", 1)
    assert gonen2013.tested(found, statement) == (1, 0, 0)
    assert gonen2013.agrees(statement, (1, 0, 0))
    assert gonen2013.tested(found, Statement("Table 2", "b", "a", 1)) == (0, 0, 1)
    assert gonen2013.tested(found, Statement("Table 2", "a", "b", 0, "supports")) == (0, 1, 0)
    found["errors"] = True
    assert gonen2013.tested(found, statement) == (0, 0, 1)
    assert not gonen2013.agrees(statement, (1, 2, 1))


def test_methods_that_were_not_measured_have_no_row():
    some = {"SVR (q = 1)": [[0.6] * 10, [0.61] * 10]}
    results = {"wine": part(some, errors=True, title="WHITEWINE: 1")}
    assert [row.method for row in gonen2013.paper_rows(results)] == [
        "SVR (q = 1)",
        "SVR (q = 1), support vectors",
    ]
    assert "WHITEWINE" in gonen2013.page(results)


def test_the_page_has_all_tables():
    results = {"multifeat": part(all_methods("multifeat", 94.0))}
    text = gonen2013.page(results)
    for heading in ("## Totals", "## MULTIFEAT", "## What the paper calls significant"):
        assert heading in text
    assert "LMKL (softmax), paper" in text
    keys = [(row.place, row.method) for row in gonen2013.paper_rows(results)]
    assert len(keys) == len(set(keys)) == 2 * len(ROWS["multifeat"]) + 3


# -- from the command line to the page ---------------------------------------------------------


def test_page_without_any_data(monkeypatch, tmp_path, experiment):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    assert gonen2013.main(["--quick", "--sets", "gauss4", "--write"]) == 0
    text = (tmp_path / "gonen2013.md").read_text(encoding="utf-8")
    assert "## GAUSS4" in text
    assert text == gonen2013.page(_command.read_results("gonen2013"))


def test_missing_data_skip_the_part(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert gonen2013.main(["--quick", "--sets", "olivetti,motorcycle"]) == 1
    assert "Olivetti faces" in capsys.readouterr().err


def test_motorcycle_section(monkeypatch):
    times = np.linspace(0, 60, 133)[:, None]
    monkeypatch.setattr(_data, "mcycle", lambda: (times, -5.0 * np.abs(times[:, 0] - 30)))
    found = gonen2013.motorcycle()
    assert found["errors"]["LMKL, three kernels 1 + x z"] < found["errors"]["SVR, linear kernel"]
    assert "Gaussian" in gonen2013.motorcycle_section(found)


# -- data --------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYKERNELS_DATA", str(tmp_path))
    for name in ("olivetti", "concrete", "mcycle"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_faces_stand_upright(folder, rng):
    faces = rng.integers(0, 255, (4096, 400)).astype(np.uint8)
    io.savemat(folder / "olivetti/olivettifaces.mat", {"faces": faces})
    X, y = _data.olivetti()
    np.testing.assert_array_equal(X[7], faces[:, 7].reshape(64, 64).T)
    np.testing.assert_array_equal(np.bincount(y), np.full(40, 10))


def test_motorcycle(folder):
    (folder / "mcycle/mcycle.csv").write_text('"","times","accel"\n"1",2.4,0\n"2",2.6,-1.3\n')
    X, y = _data.mcycle()
    np.testing.assert_array_equal(X, [[2.4], [2.6]])
    np.testing.assert_array_equal(y, [0, -1.3])


def test_concrete_has_its_target_last(folder, monkeypatch):
    (folder / "concrete/Concrete_Data.xls").touch()
    monkeypatch.setattr(fetching, "read_numbers", lambda path: np.arange(18.0).reshape(2, 9))
    X, y = _data.concrete()
    assert X.shape == (2, 8)
    np.testing.assert_array_equal(y, [8, 17])
