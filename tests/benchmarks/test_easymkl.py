"""The comparison with EasyMKL: our side of it end to end, on few rows."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from benchmarks import easymkl
from benchmarks._command import with_environment
from benchmarks.easymkl import Measured

ONE = Measured(
    contender="mkfda-2",
    problem="binary",
    n_rows=1797,
    n_kernels=10,
    seconds=0.5,
    median_seconds=0.6,
    wall_seconds=0.6,
    n_fits=3,
    prepare_seconds=0.9,
    first_seconds=-0.01,
    kernel_bytes=258_000_000,
    fit_bytes=26_000_000,
    accuracy=0.99,
    n_test=599,
    versions={"numpy": "2.0"},
    weights=[0.1] * 10,
    rel_gap=1e-7,
)
OTHER = replace(
    ONE,
    contender="easymkl-svc",
    seconds=0.4,
    median_seconds=0.5,
    prepare_seconds=0.0,
    rel_gap=None,
)


@pytest.mark.slow
def test_a_small_run_is_measured_and_reported(monkeypatch, capsys):
    monkeypatch.delenv(easymkl.VARIABLE, raising=False)
    assert easymkl.main(["--quick", "--contenders", "easymkl-svc,mkfda-2"]) == 0
    shown = capsys.readouterr().out
    assert "EasyMKL is left out" in shown
    assert "odd or even, MKFDA p=2:" in shown
    assert "240 samples × 10 Gaussian kernels" in shown
    assert "## Ten classes" in shown
    assert shown.count("| MKFDA p=2 |") == 2
    assert "| EasyMKL" not in shown


@pytest.mark.slow
def test_a_runner_measures_what_it_says():
    result = easymkl.run("mkfda-1", "ten", 200)
    assert (result.contender, result.problem, result.n_rows) == ("mkfda-1", "ten", 200)
    assert result.seconds > 0
    assert result.n_fits == 10
    assert result.fit_bytes >= 0
    assert result.n_test == 67
    assert result.accuracy > 0.7
    assert result.rel_gap <= 1e-6
    assert len(result.weights) == result.n_kernels == 10


def test_the_last_line_of_a_runner_counts():
    assert easymkl.parse(f"(200, 10)\n{json.dumps(asdict(ONE))}\n") == ONE


def test_the_instructions_are_those_of_the_module():
    lines = easymkl.instructions().splitlines()
    assert easymkl.VARIABLE in lines[0]
    assert lines[1].strip() == "python -m venv X"
    assert "torch" in lines[2]
    assert "MKLpy==0.6" in lines[3]
    assert lines[-1].strip() == f"export {easymkl.VARIABLE}=X/bin/python"


def test_the_named_python_is_used_for_easymkl_only(monkeypatch):
    monkeypatch.setenv(easymkl.VARIABLE, "elsewhere/python")
    assert easymkl.python_of("easymkl-komd") == "elsewhere/python"
    assert easymkl.python_of("mksvc-2") != "elsewhere/python"


@pytest.mark.slow
def test_a_contender_that_fails_is_reported(monkeypatch, capsys):
    monkeypatch.setattr(easymkl, "CONTENDERS", {"nobody-1": "Nobody"})
    assert easymkl.main(["--sets", "binary", "--contenders", "nobody-1"]) == 1
    assert "Nobody, odd or even: failed. No such contender" in capsys.readouterr().err


def test_unknown_contenders_are_refused(capsys):
    with pytest.raises(SystemExit):
        easymkl.main(["--contenders", "nobody-1"])
    assert "unknown: nobody-1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.4, "takes 1 times EasyMKL (bound 2: held; aim 1: held), 1.2 times by medians, 3.2"),
        (0.6, "takes 1.5 times EasyMKL (bound 2: held; aim 1: MISSED), 1.2 times by medians, 3.8"),
        (1.1, "takes 2.8 times EasyMKL (bound 2: MISSED; aim 1: MISSED), 1.2 times by medians, 5"),
    ],
)
def test_verdict_on_two_classes(seconds, expected):
    line = easymkl.binary_verdict(replace(ONE, seconds=seconds), OTHER)
    assert line == f"odd or even: MKFDA p=2 {expected} times with the checks"


def test_verdict_on_ten_classes():
    reference = replace(OTHER, problem="ten", seconds=4.0, fit_bytes=78_000_000)
    assert easymkl.ten_verdict(replace(ONE, problem="ten"), reference) == (
        "ten classes: MKFDA p=2 is 8 times faster than EasyMKL (bound 5: held), "
        "2.9 times with the checks, and 3 times leaner (bound 5: MISSED)"
    )
    assert "78 times leaner" in easymkl.ten_verdict(replace(ONE, fit_bytes=0), reference)


def test_verdict_on_the_same_method():
    ours = replace(ONE, contender=easymkl.SAME)
    nearly = replace(OTHER, weights=[0.1 + 2e-5] * 10, accuracy=0.98)
    assert easymkl.weights_verdict(ours, nearly) == (
        "odd or even: weights of our EasyMKL differ from MKLpy's by at most 2e-05 "
        "(bound 0.0001: held), accuracy 0.9900 against 0.9800"
    )
    far = replace(OTHER, weights=[0.2] * 10)
    assert "MISSED" in easymkl.weights_verdict(ours, far)
    assert len(easymkl.verdicts([nearly, ours])) == 2
    assert len(easymkl.verdicts([replace(nearly, weights=None), ours])) == 1


def test_verdicts_need_easymkl_on_the_same_problem():
    ten = replace(ONE, problem="ten")
    assert len(easymkl.verdicts([OTHER, ONE, ten])) == 1
    assert easymkl.verdicts([ONE, ten]) == []
    results = {"binary": {"contenders": [OTHER, ONE]}, "ten": {"contenders": [ten]}}
    text = easymkl.page(with_environment(results))
    assert "- odd or even: MKFDA p=2 takes 1.2 times EasyMKL" in text
    assert "EasyMKL: numpy 2.0." in text
    assert "|         none |" in text
    missing = "EasyMKL, KOMD; our EasyMKL; MKSVC p=2; MKSVC p=1; MKFDA p=1"
    assert f"Not measured: {missing}.\n\n## Ten classes" in text
