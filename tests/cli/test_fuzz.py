"""Whatever is passed: one sentence, nothing executed, nothing half written."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from tests.cli.bad_inputs import CANARY, MAKERS
from tests.cli.conftest import BOTH, frames
from tests.cli.test_mat5 import save73

# Files that a command may have written.
OUTPUTS = ("out.skops", "out.csv")


@pytest.fixture
def targets(folder, run):
    """Files to be damaged, a model, and things that are in the way of outputs."""
    assert run("fit", *BOTH, "--output", "model.skops")[0] == 0
    shutil.copy("model.skops", "kept.skops")
    (folder / "folder.skops").mkdir()
    a, _, label = frames()
    K = (a @ a.T).to_numpy()
    arrays = {"linear": K, "id": a.index.to_numpy(str), "label": label.to_numpy(str)}
    np.savez("good.npz", **arrays)
    savemat("good.mat", arrays | {name: arrays[name].astype(object) for name in ("id", "label")})
    names = {"id": [str(name) for name in a.index], "label": list(label)}
    save73(folder / "good.v73.mat", {"linear": [K, K]} | names)
    a.assign(label=label).reset_index().to_parquet("good.parquet")
    shutil.copy("a.csv", "good.csv")
    Path("good.csv.gz").write_bytes(gzip.compress(Path("a.csv").read_bytes()))
    np.save("good.npy", K[None])
    rng = np.random.default_rng(0)
    letters = rng.choice(list("ACGT"), (len(a), 10))
    sequences = "".join(
        f">{name}\n{''.join(own)}\n" for name, own in zip(a.index, letters, strict=True)
    )
    Path("good.fasta").write_text(sequences)
    Path("good.fasta.gz").write_bytes(gzip.compress(sequences.encode()))
    return folder


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("odd.")
    }


def check(arguments, before, folder, run):
    """Run a command on bad input; whether it was refused."""
    code, out, err = run(*arguments)
    told = f"{arguments!r}: {code} {err}"
    assert code in (0, 1, 2), told
    assert "Traceback" not in out + err, told
    assert "should not happen" not in err, told
    lines = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert len(lines) == (1 if code else 0) or "Usage: " in out, told
    assert not CANARY.exists(), told
    after = contents(folder)
    new = {path for path in after if after[path] != before.get(path)}
    if code == 0:
        for path in new:
            path.unlink()
    else:
        assert new == set(), told
    assert {path: after[path] for path in before} == before, told
    assert not list(folder.rglob(".manykernels-*")), told
    return code != 0


def fuzz(targets, run, seed, times):
    rng = np.random.default_rng(seed)
    before, refused = contents(targets), 0
    for number in range(times):
        arguments = MAKERS[number % len(MAKERS)](rng)
        refused += check(arguments, before, targets, run)
    return refused


@pytest.mark.slow
def test_bad_input(targets, run):
    assert fuzz(targets, run, 0, 50) > 30


@pytest.mark.slow
def test_much_bad_input(targets, run):
    assert fuzz(targets, run, 1, 2000) > 1400


@pytest.mark.slow
def test_files_that_are_good(targets, run):
    """Or else damage to them would show nothing."""
    endings = ("csv", "csv.gz", "npz", "mat", "v73.mat", "parquet", "fasta", "fasta.gz")
    for ending in endings:
        target = ("--target", "good.csv:label") if "fasta" in ending else ("--target", "label")
        options = ("--index", "id", *target, "--p", "2", "--reg", "1", "--output", "out.skops")
        kernel = ":spectrum(k=2)" if "fasta" in ending else ""
        code, _, err = run("fit", "--view", f"k=good.{ending}{kernel}", *options, "--force")
        assert code == 0, err
    assert len(pd.read_csv("a.csv")) == 40
