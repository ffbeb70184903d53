"""Threads of this package and of BLAS, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_number_of_blas_threads_is_put_back():
    alone = Path(__file__).with_name("threads_alone.py")
    environment = {name: text for name, text in os.environ.items() if "XDIST" not in name}
    outcome = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", str(alone)],
        cwd=alone.parents[2],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert outcome.returncode == 0, outcome.stdout
    assert " passed" in outcome.stdout
