"""A folder with files as users have them, and the command as they run it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import manykernels as mk
import manykernels.reporting
from manykernels.cli import main, samples

# Rows to learn from, and to predict for.
N, N_NEW = 40, 10
SPEC = """\
index = "id"
target = "label"
p = 2
reg = [1.0]

[views]
a = "a.csv"

[views.b]
file = "b.csv"
columns = ["age", "site"]
"""


def frames():
    """Two views of the same people in different orders, and who is ill."""
    rng = np.random.default_rng(0)
    people = pd.Index([f"{number:03d}" for number in range(N + N_NEW)], name="id")
    ill = rng.random(len(people)) < 0.5
    a = pd.DataFrame(rng.normal(1.5 * ill[:, None], size=(len(people), 2)), people, ["x", "y"])
    site = rng.choice(["north", "south"], len(people))
    b = pd.DataFrame({"age": rng.normal(50, 9, len(people)), "site": site}, people)
    label = pd.Series(np.where(ill, "ill", "well"), people, name="label")
    return a.round(3), b.round(1), label


def patients(people):
    """Patients of two samples each, in another order than the samples."""
    numbers = np.arange(len(people)) // 2
    return pd.Series([f"{n:02d}" for n in numbers], people, name="patient").sort_index()[::-1]


def clinic(a):
    """Survival in months, shorter for larger x; many are censored."""
    rng = np.random.default_rng(1)
    times, ends = rng.exponential(24 * np.exp(-a["x"])), rng.exponential(60, len(a))
    months = np.minimum(times, ends).round(2) + 0.01
    return pd.DataFrame({"months": months, "died": (times <= ends).astype(int)}, a.index)


class Stub:
    """In the place of a report, which has tests of its own."""

    def __init__(self, *given, **options):
        self.given, self.options = given, options

    def save(self, path):
        Path(path).write_text(f"<html>{type(self.given[0]).__name__}</html>")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder to work in, with the files of the examples."""
    a, b, label = frames()
    a.assign(label=label)[:N].to_csv(tmp_path / "a.csv")
    b[:N].sample(N, random_state=0).to_csv(tmp_path / "b.csv")
    b[5:N].to_csv(tmp_path / "gaps.csv")
    a[N:].to_csv(tmp_path / "a_new.csv")
    b[N:][::-1].to_csv(tmp_path / "b_new.csv")
    patients(a.index[:N]).to_csv(tmp_path / "patients.csv")
    clinic(a)[:N].to_csv(tmp_path / "clinic.csv")
    (tmp_path / "model.toml").write_text(SPEC)
    (tmp_path / "sets.gmt").write_text("FIRST\tof a\tx\nBOTH\tof a\tx\ty\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(manykernels.reporting, "report", Stub, raising=False)
    return tmp_path


@pytest.fixture
def one_point(monkeypatch):
    """Searches have one point unless they are told otherwise, so that they do not take long."""
    kinds = {
        ("classification", "fisher"): mk.MKFDACV,
        ("regression", "fisher"): mk.MKRidgeCV,
        ("survival", "cox"): mk.MKCoxCV,
    }
    for kind, method in kinds.items():
        quick = partial(method, ps=[2.0], regs=[1.0])
        monkeypatch.setitem(samples._ESTIMATORS, kind, quick)


@pytest.fixture
def run(capsys):
    """Run a command: its exit code, what it says, and what it complains about."""

    def ran(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return ran


# The usual options, at one norm and regularisation so that it does not take long.
QUICK = ("--p", "2", "--reg", "1")
BOTH = ("--view", "a=a.csv", "--view", "b=b.csv", "--index", "id", "--target", "label", *QUICK)
