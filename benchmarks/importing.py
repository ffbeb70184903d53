"""How long it takes to import manykernels, beside a module of scikit-learn, and the first machine.

    python -m benchmarks.importing [--quick] [--sets import,machine] [--write]

Each statement runs in a new interpreter, all of them in turn. Measured are seconds of the
processor of the whole process, user and system, so that other programs on the machine matter
little; files are in the memory of the system after the first round, which is not counted.

The first support vector machine of a process imports numba and compiles loops, which numba caches
on disk: seconds of that fit with an empty cache, and with the cache that it leaves behind.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks._command import Results, command_line, report
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
SETS = ["import", "machine"]
MACHINE_REPETITIONS = 5
#: Most seconds of the first machine of a process with an empty cache.
MOST_SECONDS = 1.5
FIRST_MACHINE = """
import time
import numpy as np
from manykernels import MKSVC

X = np.random.default_rng(0).standard_normal((150, 10))
begin = time.process_time()
MKSVC().fit(X, X[:, 0] > 0)
print(time.process_time() - begin)
"""
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


def run_machine(repetitions: int) -> dict[str, float]:
    """Median seconds of the first machine of a process, without and with a cache."""
    rounds = []
    for _ in range(repetitions):
        with TemporaryDirectory() as cache:
            rounds.append([_first_machine(cache), _first_machine(cache)])
    without, with_cache = np.median(rounds, axis=0).tolist()
    return {"repetitions": repetitions, "without_cache": without, "with_cache": with_cache}


def _first_machine(cache: str) -> float:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", FIRST_MACHINE]
    answer = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(answer.stdout)


def machine_section(part: dict[str, float]) -> list[str]:
    """The section about the first machine."""
    cold = part["without_cache"]
    return [
        "## The first support vector machine of a process",
        "`MKSVC().fit` on 150 samples of one table, import of numba included; seconds of the "
        f"processor, medians of {part['repetitions']}. With an empty cache nearly all of it is "
        "numba compiling six functions; the loop of pair steps takes about half.",
        markdown(
            ["cache of numba", "seconds", "bound", ""],
            [
                ["empty", f"{cold:.2f}", f"{MOST_SECONDS:g}", verdict(cold <= MOST_SECONDS)],
                ["of an earlier process", f"{part['with_cache']:.2f}", "", ""],
            ],
            n_left=1,
        ),
    ]


def page(results: Results) -> str:
    """The page of the documentation."""
    parts = ["# Importing", "Written by `python -m benchmarks.importing --write`."]
    parts.append(environments(results))
    if "import" in results:
        part = results["import"]
        parts += [
            "Seconds of the processor, each statement in a new interpreter, all in turn; medians "
            f"of {part['repetitions']}. Estimators, `compare` and `view_importance` are imported "
            "when they are first asked for.",
            markdown(HEADER, [Row(**row).cells for row in part["rows"]], n_left=1),
        ]
    if "machine" in results:
        parts += machine_section(results["machine"])
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = command_line("importing", "How long importing takes, and the first machine.", SETS)
    options = parser.parse_args(arguments)
    results: Results = {}
    if "import" in options.sets:
        repetitions = QUICK_REPETITIONS if options.quick else REPETITIONS
        results["import"] = {"repetitions": repetitions, "rows": run(repetitions)}
    if "machine" in options.sets:
        results["machine"] = run_machine(
            QUICK_REPETITIONS if options.quick else MACHINE_REPETITIONS
        )
    report("importing", results, page, options.write, SETS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
