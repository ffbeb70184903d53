"""Compiled functions are kept where they can be, and work where they cannot."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import manykernels
from tests.problems import slow

SOURCE = """
from manykernels.utils.compiled import compiled

@compiled()
def doubled(x):
    return 2 * x
"""
# A path below a file: nobody can make a directory there, not even the superuser.
NOWHERE = os.path.join(os.devnull, "cache")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    directory = tmp_path / "cache"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(directory))
    return directory


@pytest.fixture
def load(tmp_path):
    """The function of SOURCE as a new process would have it."""
    path = tmp_path / "doubling.py"
    path.write_text(SOURCE)

    def load():
        spec = importlib.util.spec_from_file_location("doubling", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.doubled

    return load


def test_a_second_process_does_not_compile(cache, load):
    first = load()
    assert first(3) == 6
    assert not first.stats.cache_hits
    second = load()
    assert second(3) == 6
    assert second.stats.cache_hits
    assert not second.stats.cache_misses


def test_no_directory_to_write(load, tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", NOWHERE)
    monkeypatch.setenv("HOME", NOWHERE)
    monkeypatch.setenv("XDG_CACHE_HOME", NOWHERE)
    (tmp_path / "__pycache__").write_text("a file where the directory would be")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    function = load()
    assert function(3) == 6
    assert function.stats.cache_path is None


def test_a_directory_that_is_lost_before_anything_is_kept(cache, load):
    function = load()
    shutil.rmtree(cache)
    cache.write_text("a file where the directory was")
    assert function(3) == 6


@pytest.mark.parametrize("suffix", ["nbi", *slow("nbc")])
@pytest.mark.parametrize("content", [b"", *slow(b"garbage", b"\x80\x05K")])
def test_damaged_files(cache, load, suffix, content):
    assert load()(3) == 6
    for path in cache.rglob(f"*.{suffix}"):
        path.write_bytes(content)
    assert load()(3) == 6


FITS = """
import numpy as np
import manykernels
from manykernels import LocalizedSVC, MKSVC
from manykernels.kernels import RBF, Linear
from manykernels.smo.loops import set_slopes

X = np.random.default_rng(0).normal(size=(12, 2))
for model in (MKSVC([Linear(), RBF()]), LocalizedSVC([Linear(), RBF()])):
    assert model.fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.5
print(manykernels.__file__, set_slopes.stats.cache_path)
"""


@pytest.mark.slow
def test_machines_of_a_package_that_cannot_be_written(tmp_path):
    package = tmp_path / "manykernels"
    shutil.copytree(
        Path(manykernels.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    for room in ("smo", "gating"):
        (package / room / "__pycache__").write_text("a file where the directory would be")
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        # Compiled functions need not be fast here.
        "NUMBA_OPT": "0",
        **dict.fromkeys(["HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"], NOWHERE),
    }
    answer = subprocess.run(
        [sys.executable, "-c", FITS],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split() == [str(package / "__init__.py"), "None"]
