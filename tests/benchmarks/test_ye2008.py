"""The tables of Ye 2008: printed figures, data sets, errors and rows, on small problems."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import _command, _ye2008_protocol, ye2008
from benchmarks._tables import WITHIN
from benchmarks._ye2008 import SECONDS, SUPPORT, TABLES, WIDTHS
from manykernels import KernelStack


@pytest.fixture
def small(monkeypatch, tmp_path):
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "g", "b")
    two = _ye2008_protocol.PaperSet(lambda seed: (X, y), "few rows", 40, 20, n_qcqp=1)
    several = _ye2008_protocol.PaperSet(
        lambda seed: _ye2008_protocol.waveform(seed, 20), "few rows", 36, 24, n_qcqp=1
    )
    monkeypatch.setitem(ye2008.SETS, "sonar", two)
    monkeypatch.setitem(ye2008.SETS, "waveform(3)", several)
    return tmp_path


# -- printed figures -----------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_printed_tables_have_all_rows(name):
    rows = TABLES[name].rows
    alone = set(ye2008.ALONE) if name in ye2008.TWO_CLASSES else set()
    fitted = set(ye2008.methods(name)) - {"Newton θ", "Newton θ,λ"}
    assert set(rows) == fitted | alone
    assert all(len(row.weights) == 10 for row in rows.values())


@pytest.mark.parametrize("name", TABLES)
def test_printed_weights_have_the_sums_that_the_paper_tells(name):
    for method, row in TABLES[name].rows.items():
        if method in ye2008.CHOOSING:
            assert sum(row.weights) == 30
        elif method in ("SM1", "SM2"):
            assert sum(row.weights) == pytest.approx(10, abs=0.02)
        elif method == "SM2 C":
            assert 9 < sum(row.weights) < 11
        elif method == "QCQP θ,λ" and name in ("sonar", "heart"):
            assert sum(row.weights) + row.reg > 1.04  # the only rows that do not add up
        elif row.accuracy is not None:
            # Where λ is learnt, it is the share that the weights lack.
            missing = row.reg if method.endswith(",λ") else 0
            assert sum(row.weights) + missing == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("name", sorted(set(TABLES) - set(ye2008.TWO_CLASSES)))
def test_printed_accuracies_are_means_over_so_many_test_rows(name):
    n_predictions = 30 * ye2008.SETS[name].n_test
    for row in TABLES[name].rows.values():
        n_right = round(row.accuracy / 100 * n_predictions)
        assert row.accuracy == pytest.approx(100 * n_right / n_predictions, abs=5.1e-3)


def test_printed_widths_seconds_and_support_vectors():
    np.testing.assert_allclose(WIDTHS, np.logspace(-1, 2, 10), rtol=0.03)
    assert set(SECONDS) == set(TABLES) - set(ye2008.TWO_CLASSES)
    assert SECONDS["wine(3)"]["SVM K,C"] == 3.65
    assert set(SUPPORT) == set(ye2008.TWO_CLASSES)


# -- data sets -----------------------------------------------------------------------------


def test_the_waveform_generator():
    X, y = _ye2008_protocol.waveform(0, n_per_class=2000)
    means = np.array([X[y == one].mean(axis=0) for one in range(3)])
    # Class 0 mixes the triangles with peaks of 6 at positions 11 and 15, and so on.
    np.testing.assert_allclose(means[0, [10, 14]], [4, 4], atol=0.15)
    np.testing.assert_allclose(means[1, [6, 10]], [4, 4], atol=0.15)
    np.testing.assert_allclose(means[2, [6, 14]], [3, 3], atol=0.15)
    np.testing.assert_allclose(means[:, 21:], 0, atol=0.1)
    np.testing.assert_array_equal(X, _ye2008_protocol.waveform(0, n_per_class=2000)[0])


def test_rows_of_satimage_are_the_last_of_the_test_file(monkeypatch):
    y = np.tile([1, 2, 3, 4, 5, 7], 1073)[:6435]
    X = np.arange(6435.0)[:, None]
    monkeypatch.setattr(_ye2008_protocol, "_scaled", lambda name: (X, y))
    rows, labels = ye2008.SETS["satimage(3)"].draw(0)
    assert rows.min() >= 6435 - 600
    assert rows.max() >= 6435 - 6
    np.testing.assert_array_equal(np.unique(labels, return_counts=True), [[1, 2, 3], [100] * 3])


def test_rows_that_are_drawn_depend_on_the_split(monkeypatch):
    y = np.repeat(["BRICKFACE", "SKY", "FOLIAGE", "GRASS"], 200)
    monkeypatch.setattr(_ye2008_protocol, "_scaled", lambda name: (np.arange(800.0)[:, None], y))
    one, labels, train, test = ye2008.SETS["segment(3)"].split(0)
    assert set(labels) == {"BRICKFACE", "SKY", "FOLIAGE"}
    assert (len(train), len(test), len(np.unique(one))) == (180, 120, 300)
    assert not set(train) & set(test)
    assert not np.array_equal(one, ye2008.SETS["segment(3)"].draw(1)[0])


# -- fits ----------------------------------------------------------------------------------


def test_of_two_classes_the_nearer_mean_projection_decides():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], [90, 30])
    X = rng.standard_normal((120, 2)) + 1.5 * (y == "b")[:, None]
    stack, train, test = _ye2008_protocol.gaussian_kernels(X), np.arange(0, 120, 2), np.arange(120)
    kernels, test_kernels = stack[np.ix_(train, train)], stack[np.ix_(test, train)]
    model = _ye2008_protocol.fda(0.1, "newton").fit(kernels, y[train])
    answers = _ye2008_protocol.decided(model, kernels, y[train], test_kernels)
    projected = model.decision_function(test_kernels)
    means = [projected[train][y[train] == label].mean() for label in "ab"]
    nearer = np.abs(projected[:, None] - means).argmin(axis=1)
    np.testing.assert_array_equal(answers, np.array(["a", "b"])[nearer])
    # The most probable class is more often the large one.
    assert (answers == "b").sum() > (model.predict(test_kernels) == "b").sum()
    fit = _ye2008_protocol.fitted(model, stack, y, train, test)
    assert fit.accuracy == pytest.approx(100 * np.mean(answers == y))


def test_a_kernel_that_was_chosen_projects_alone():
    X, y = _ye2008_protocol.waveform(0, 30)
    stack = _ye2008_protocol.gaussian_kernels(X).select([7, 9])
    model = ye2008.CHOOSING["RKDA K,λ"]().fit(stack, y)
    alone = stack.select([model.best_index_])
    answers = _ye2008_protocol.decided(model, stack, y, stack)
    same = ye2008.ALONE["RKDA λ"]().fit(alone, y)
    np.testing.assert_array_equal(answers, _ye2008_protocol.decided(same, alone, y, alone))
    assert np.mean(answers == y) > 0.8


def test_machines_take_the_sign_of_their_output():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = np.where(X[:, 0] + rng.standard_normal(60) > 0.8, "g", "b")
    stack = _ye2008_protocol.gaussian_kernels(X).select([0])
    model = ye2008.ALONE["SVM C"]().fit(stack, y)
    plain = ye2008._svm(model.C_, "hinge").fit(stack, y)
    assert not np.any(model.calibration_.offsets)
    np.testing.assert_allclose(
        model.decision_function(stack), plain.decision_function(stack), atol=1e-3
    )
    answers = _ye2008_protocol.decided(model, stack, y, stack)
    np.testing.assert_array_equal(answers, model.predict(stack))


# -- rows beside the paper -----------------------------------------------------------------


def part(accuracy=98.0, n=4, **changed):
    spread = np.array([-1.0, 1.0] * (n // 2))
    method = {"accuracy": (accuracy + spread).tolist(), "weights": [0.1] * 10, "seconds": 0.1}
    joint = {**method, "identity": [0.0, 0.2] * (n // 2), "n_at_least": 0}
    methods = {
        name: joint if name.endswith(",λ") and name not in ye2008.CHOOSING else method
        for name in ye2008.methods("wine(3)")
    }
    return {
        "environment": {"versions": {"numpy": "2"}, "machine": "a machine"},
        "reading": "few rows",
        "n_rows": [107, 71],
        "n_splits": n,
        "methods": {**methods, **changed},
        "alone": {},
        "qcqp": {},
    }


def test_errors_are_those_of_both_means():
    printed = TABLES["wine(3)"].rows["SILP θ"]  # 98.12 ± 1.49
    values = [97.0, 99.0]
    ours = 2.0 / 2
    theirs = 1.49**2 / 30
    assert ye2008._error(values, printed) == pytest.approx((ours + theirs) ** 0.5)
    # The paper's sample of rows is one of many.
    assert ye2008._error(values, printed, 0.7) == pytest.approx((ours + theirs + 0.49) ** 0.5)


def test_samples_of_rows_that_are_equal_have_no_deviation(small, monkeypatch):
    one = ye2008.SETS["sonar"]
    X, y = one.draw(0)
    same = replace(one, redrawn=True)
    worse = np.random.default_rng(0).permutation(y)
    other = replace(same, draw=lambda seed: (X, y if seed % 2 else worse))
    monkeypatch.setattr(ye2008, "SETS", {"same": same, "other": other, "sonar": one})
    monkeypatch.setattr(ye2008, "SPLITS_OF_A_SAMPLE", 3)
    measured = ye2008.measured_samples(4)
    found = measured["deviation"]
    assert set(found) == {"same", "other"}
    for method in (ye2008.FIXED, ye2008.LEARNT):
        assert found["same"][method] == 0.0
        assert found["other"][method] > 10.0
        assert len(measured["means"]["other"][method]) == 4


def test_rows_of_a_program_that_was_not_run_are_those_of_newton():
    results = {"wine(3)": part(**{"Newton θ": {**part()["methods"]["Newton θ"]}})}
    del results["wine(3)"]["methods"]["QCQP θ"]
    rows = {row.method: row for row in ye2008.table_rows("wine(3)", results)}
    assert rows["QCQP θ"].ours == 98.0
    assert rows["QCQP θ"].outcome == WITHIN
    assert list(rows) == list(TABLES["wine(3)"].rows)


def test_other_rows_are_a_reason_only_if_they_reach_the_paper():
    # The paper has 98.06 for QCQP θ.
    tried = {ye2008.FIXED: {"train file, first": 97.0, "test file, first": 99.0}}
    by_set = {"satimage(3)": tried}
    results = {"satimage(3)": part(100.0, 30), ye2008.ROWS: {"accuracy": by_set}}
    verdict = ye2008.table_rows("satimage(3)", results)[2].verdict
    assert verdict == "above: other choices of rows give 97.0 to 99.0"
    # The method itself counts, where it was measured.
    tried["QCQP θ"] = {"train file, first": 98.2, "test file, first": 99.0}
    assert ye2008.table_rows("satimage(3)", results)[2].verdict == "above, unexplained"
    del tried["QCQP θ"]
    tried[ye2008.FIXED]["train file, first"] = 98.5
    assert ye2008.table_rows("satimage(3)", results)[2].verdict == "above, unexplained"
    results["satimage(3)"] = part(90.0, 30)
    tried[ye2008.FIXED] = {"train file, first": 93.0, "test file, first": 94.0}
    verdict = ye2008.table_rows("satimage(3)", results)[2].verdict
    assert verdict == "below: none of 2 choices of rows gives more than 94.0"


def test_samples_of_rows_are_a_reason_only_if_one_agrees_with_the_paper():
    # The paper has 96.81 ± 1.26 for SILP θ,λ, and 97.02 ± 1.12 for SILP θ.
    means = {ye2008.FIXED: [98.0, 99.0], ye2008.LEARNT: [97.2, 99.0]}
    nothing, some = (dict.fromkeys(means, value) for value in (0.0, 0.4))
    found = {"n_splits": 16, "means": {"segment(4)": means}, "within": {"segment(4)": some}}
    found["deviation"] = {"segment(4)": nothing}
    results = {"segment(4)": part(100.0, 30), ye2008.SAMPLES: found}
    rows = {row.method: row for row in ye2008.table_rows("segment(4)", results)}
    assert rows["SILP θ"].verdict == "above, unexplained"
    assert rows["SILP θ,λ"].verdict == (
        "above: 1 of 2 single samples of rows agree with the paper; they give 97.2 to 99.0"
    )
    found["within"] = {"segment(4)": nothing}
    means[ye2008.LEARNT] = [97.3, 99.0]
    rows = {row.method: row for row in ye2008.table_rows("segment(4)", results)}
    assert rows["SILP θ,λ"].verdict == "above, unexplained"


def test_support_vectors_by_how_they_are_counted(small, monkeypatch):
    monkeypatch.setattr(ye2008, "TWO_CLASSES", ("sonar",))
    found = ye2008.measured_support(2)["support"]["sonar"]
    assert set(found) == {"SM1", "SM2", "SM2 C"}
    for counts in found.values():
        assert 0 < counts["large"] <= counts["all"] <= 100
        assert counts["distinct"] == counts["all"]  # no rows are equal


def test_another_count_of_support_vectors_is_a_reason():
    counts = {"all": 42.0, "large": 24.0, "distinct": 39.5}
    results = {
        ye2008.DUAL: {
            "least": 0.01,
            "support": {"cancer": dict.fromkeys(SUPPORT["cancer"], counts)},
        }
    }
    reason = ye2008._support_reason("cancer", "SM2", 25.4, 42.0, 0.6, results)
    assert reason.startswith("24.0 if only dual variables above 0.01 are counted")
    reason = ye2008._support_reason("cancer", "SM1", 38.5, 42.0, 0.6, results)
    assert reason == "39.5 if equal rows are counted once"
    assert ye2008._support_reason("cancer", "SM1", 35.0, 42.0, 0.6, results) == ""
    assert ye2008._support_reason("cancer", "SM1", 38.5, 42.0, 0.6, {}) == ""


def test_kim_s_objective_is_a_ratio_of_variances():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 2
    X[y == 1] += 1.0
    within = sum(np.cov(X[y == k].T, bias=True) * (y == k).sum() for k in (0, 1)) / len(y)
    apart = X[y == 0].mean(axis=0) - X[y == 1].mean(axis=0)
    expected = apart @ np.linalg.solve(within + 0.1 * np.eye(4), apart)
    assert ye2008.kim_objective(X @ X.T, y, 0.1) == pytest.approx(expected)


def test_reasons_are_told_where_the_paper_contradicts_itself():
    reason = ye2008._reason("cancer", "SDP θ", 96.05, 97.9, 0.6, {})
    assert reason.startswith("not at the optimum in the paper: its weights are 1.8 apart")
    assert ye2008._reason("cancer", "SDP θ,λ", 96.0, 98.9, 0.6, {}) == ""
    reason = ye2008._reason("cancer", "SDP θ,λ", 96.0, 97.9, 0.6, {})
    assert reason == "the paper's SILP, which solves the same program, has 96.98"
    shares = {"cancer": {"paper": 0.46, "equal": 0.75}, "sonar": {"paper": 0.9, "equal": 0.8}}
    results = {ye2008.KIM: {"share": shares}}
    assert "46 % of the optimum" in ye2008._reason("cancer", "SDP Kim", 73.4, 97.7, 0.9, results)
    assert ye2008._reason("sonar", "SDP Kim", 88.5, 87.0, 0.7, results) == ""


@pytest.mark.parametrize("method", ye2008.CHOOSING)
def test_of_equal_kernels_the_widest_or_the_narrowest_is_taken(method):
    X, y, train, test = ye2008.SETS["waveform(3)"].split(0)
    train, test = train[:60], test[:30]
    equal = ye2008.gaussian_kernels(X).select([9]).kernel(0)
    stack = KernelStack.from_arrays([np.eye(len(X)), *[equal] * 3])
    fit = ye2008.one_fit(method, ye2008.CHOOSING[method](), stack, y, train, test)
    ends = ye2008.best_in_folds(fit)
    np.testing.assert_array_equal(ends["narrowest"], [0.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(ends["widest"], [0.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(fit.weights, ends[ye2008.TIES[method]])


def test_the_page_says_how_ties_were_settled():
    counts = np.array(TABLES["wine(3)"].rows["RKDA K,λ"].weights) / 30
    found = {"widest": counts, "narrowest": counts[::-1]}
    line = ye2008.ties_line({"wine(3)": {"methods": {"RKDA K,λ": found}}})
    assert f"{np.abs(counts - counts[::-1]).sum():.2f} with the narrowest, 0.00 with the" in line
    assert "nearer in 1 and farther in 0 of 1 tables, so that here the widest" in line
    assert ye2008.ties_line({}) == ""


def test_a_single_kernel_that_differs_as_much_is_a_reason():
    # The paper has 90.65 with the kernel of σ = 10 alone, its best.
    results = {"sonar": {"alone": {"SVM C": [[80.0] * 6 + [88.65] + [80.0] * 3]}}}
    reason = ye2008._reason("sonar", "SM1", 89.75, 87.0, 1.0, results)
    assert reason == "the SVM with its best kernel alone (σ = 10) differs by -2.0 points, too"
    assert ye2008._reason("sonar", "SM1", 89.75, 84.0, 1.0, results) == ""
    assert ye2008._reason("sonar", "SM1", 84.0, 87.0, 1.0, results) == ""


def test_weights_are_shown_as_the_paper_prints_them():
    some = part()
    assert ye2008.weights_of(some, "SILP θ").sum() == pytest.approx(1)
    # The identity has a tenth of the trace in the mean.
    assert ye2008.weights_of(some, "SILP θ,λ").sum() == pytest.approx(0.9)
    assert ye2008.weights_of(some, "RKDA K,λ").sum() == pytest.approx(30)
    some["methods"]["SM2 C"] = some["methods"]["SILP θ,λ"]
    assert ye2008.weights_of(some, "SM2 C").sum() == pytest.approx(9.9)


def test_the_statement_about_times_names_what_misses_it():
    slow = {**part()["methods"]["SILP θ"], "seconds": 2.0}
    results = {"wine(3)": part(**{"SILP θ": slow, "SVM K,C": {**slow, "seconds": 3.0}})}
    results["wine(3)"]["methods"]["SILP θ,λ"]["seconds"] = 0.01
    text = ye2008.faster(results, ["wine(3)"])
    assert text.endswith("MISSED (SILP θ against RKDA K,λ on wine(3)).")


# -- the whole -----------------------------------------------------------------------------


def test_from_the_command_line_to_the_page(small, capsys):
    assert ye2008.main(["--quick", "--sets", "sonar", "waveform(3)", "--write"]) == 0
    page = (small / "ye2008.md").read_text(encoding="utf-8")
    for section in ("Table 2: sonar", "Table 15: waveform(3)", "Table 17", "Table 16", "Figure 1"):
        assert f"\n## {section}" in page
    results = _command.read_results("ye2008")
    assert page == ye2008.page(results)
    assert len(ye2008.paper_rows(results)) == 14 + 3 + 8
    for method, one in results["sonar"]["qcqp"].items():
        assert one["weights"] < 1e-2, method
        assert one["accuracy"] <= 5.0  # one test row
    sdp, newton = (results["sonar"]["methods"][name]["weights"] for name in ("SDP θ", "Newton θ"))
    np.testing.assert_allclose(sdp, newton, atol=1e-2)
    assert "split 2 of 2" in capsys.readouterr().err


def test_missing_data_skip_the_set(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    _ye2008_protocol._scaled.cache_clear()
    assert ye2008.main(["--quick", "--sets", "ionosphere"]) == 1
    assert "Skipped: ionosphere." in capsys.readouterr().err
