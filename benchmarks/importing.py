"""How long it takes to import manykernels, beside a module of scikit-learn.

    python -m benchmarks.importing [--quick] [--write]

Each statement runs in a new interpreter, all of them in turn. Measured are seconds of the
processor of the whole process, user and system, so that other programs on the machine matter
little; files are in the memory of the system after the first round, which is not counted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np

from benchmarks._command import Results, report
from benchmarks._tables import environments, markdown, verdict

REPETITIONS = 15
QUICK_REPETITIONS = 1
REFERENCE = "import sklearn.linear_model"
#: Statements, and how many times the reference they may take; None if nothing was promised.
BOUNDS: dict[str, float | None] = {
    "import manykernels": 1.3,
    "from manykernels import MKFDA": None,
    "from manykernels import compare": None,
}
HEADER = ["statement", "seconds", "of the reference", "bound", ""]


@dataclass(frozen=True)
class Row:
    """The median time of a statement, and that of the reference."""

    statement: str
    seconds: float
    reference: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.reference

    @property
    def cells(self) -> list[str]:
        bound = BOUNDS.get(self.statement)
        promise = ["", ""] if bound is None else [f"{bound:g}", verdict(self.ratio <= bound)]
        return [f"`{self.statement}`", f"{self.seconds:.2f}", f"{self.ratio:.2f}", *promise]


def seconds_of(statement: str) -> float:
    """Processor time of an interpreter that runs a statement."""
    before = os.times()
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = os.times()
    spent = after.children_user - before.children_user
    return spent + after.children_system - before.children_system


def run(repetitions: int) -> list[Row]:
    """Times of all statements, the reference first."""
    statements = [REFERENCE, *BOUNDS]
    rounds = [[seconds_of(one) for one in statements] for _ in range(repetitions + 1)]
    medians = np.median(rounds[1:], axis=0)
    return [Row(one, time, medians[0]) for one, time in zip(statements, medians, strict=True)]


def page(results: Results) -> str:
    """The page of the documentation."""
    part = results["import"]
    parts = [
        "# Importing",
        "Written by `python -m benchmarks.importing --write`. Seconds of the processor, each "
        f"statement in a new interpreter, all in turn; medians of {part['repetitions']}. "
        "Estimators, `compare` and `view_importance` are imported when they are first asked for.",
        environments(results),
        markdown(HEADER, [Row(**row).cells for row in part["rows"]], n_left=1),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.importing", description="How long importing takes."
    )
    parser.add_argument("--quick", action="store_true", help="once, to see it work")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/importing.md")
    options = parser.parse_args(arguments)
    repetitions = QUICK_REPETITIONS if options.quick else REPETITIONS
    part = {"repetitions": repetitions, "rows": run(repetitions)}
    report("importing", {"import": part}, page, options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
