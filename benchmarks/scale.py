"""From a thousand rows to ten million: MKFDA on explicit features, in two passes over the rows.

    python -m benchmarks.scale [--sets simulated,pendigits,scikit-learn] [--most 1e7] [--write]

Ten Gaussian kernels of 200 landmarks each, 2000 features in all. Rows are arrays of dask, drawn
when they are read: three classes in ten views, of which three matter; and the strokes of
pendigits, copied with noise. "single" is MKFDA at one p and λ; "grid" is MKFDACV, four p and eight
λ by five folds.

Beside scikit-learn: its Nystroem of the same kernels, landmarks and features, side by side in a
FeatureUnion, and a RidgeClassifier at one λ, on rows that are in memory.

Each fit is a process of its own. Time is that of the whole fit, the drawing of rows included;
memory is the peak that the process holds itself (RssAnon).
"""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks._command import command_line, write_sections
from benchmarks._scale_problems import RELEVANT
from benchmarks._tables import environment, markdown, verdict

SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)
SIZES_BESIDE = (2 * 10**4, 10**5, 2 * 10**5)
# From here on time should grow as the number of rows does.
_LINEAR_FROM = 10**5
# Bounds that were set before anything was measured: seconds at 10⁶ and 10⁷ rows, GiB at 10⁶ rows,
# deviation of the slope from one, and the time of scikit-learn's one model that a grid may take.
MOST_SECONDS = {10**6: 180.0, 10**7: 1200.0}
MOST_GIB = 1.5
_SLOPE = 0.1
MOST_RATIO = 2.0

HEAD = """# Any number of rows

`python -m benchmarks.scale --write`. Ten Gaussian kernels with 200 landmarks each, 2000 features.
Two passes over rows of dask, drawn when they are read, none of them kept. *single*: `MKFDA` at
p = 1 and one λ. *grid*: `MKFDACV`, 32 points judged by five folds, whose moments are summed in the
same pass. Each fit is a process of its own; seconds are wall-clock and include the drawing of
rows, memory is the peak that the process itself holds. Accuracy is that on fresh rows."""


def run(problem: str, n_rows: int, method: str) -> dict[str, Any]:
    """One fit in another process."""
    command = [sys.executable, "-m", "benchmarks._scale_runner", problem, str(n_rows), method]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        raise RuntimeError(f"{' '.join(command[2:])}: {answer.stderr.strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    print(
        f"{problem:10s} {n_rows:>9d} {method:12s} {found['seconds']:8.1f} s "
        f"({found['processor']:.1f} s of processors)  {found['gib']:.2f} GiB  "
        f"accuracy {found['accuracy']:.4f}",
        flush=True,
    )
    return found


def slope(results: list[dict[str, Any]]) -> float:
    """Growth of time with rows, as a power, over those where it should be one."""
    long = [one for one in results if one["rows"] >= _LINEAR_FROM]
    if len(long) < 2:
        return float("nan")
    logs = np.log([[one["rows"], one["seconds"]] for one in long])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def found_relevant(weights: dict[str, float]) -> bool:
    """Whether the largest weights are those of the relevant views."""
    best = sorted(weights, key=weights.__getitem__, reverse=True)[: len(RELEVANT)]
    return set(best) == {f"view{j}" for j in RELEVANT}


def section(results: list[dict[str, Any]], relevant: bool) -> str:
    """Table of the fits of one problem, and what of the bounds was held."""
    rows, remarks = [], []
    for one in results:
        total = sum(one["weights"].values())
        best = sorted(one["weights"].items(), key=lambda item: -item[1])[:3]
        rows.append(
            [
                f"{one['rows']:.0e}".replace("e+0", "e"),
                one["method"],
                f"{one['seconds']:.1f} ({one['processor']:.1f})",
                f"{one['gib']:.2f}",
                f"{one['rel_gap']:.0e}",
                str(one["factorisations"]),
                f"{100 * one['accuracy']:.1f}",
                ", ".join(f"{name} {weight / total:.2f}" for name, weight in best),
                one.get("chosen", ""),
            ]
        )
    head = ["rows", "", "seconds (of processors)", "GiB", "gap", "factorisations", "accuracy %"]
    table = markdown([*head, "largest shares of the weights", "chosen"], rows)
    for method in ("single", "grid"):
        own = [one for one in results if one["method"] == method]
        for small, large in pairwise([one for one in own if one["rows"] >= _LINEAR_FROM]):
            more = large["seconds"] - small["seconds"]
            remarks.append(
                f"- {method}: from {small['rows']:.0e} to {large['rows']:.0e} rows each further "
                f"row takes {1e6 * more / (large['rows'] - small['rows']):.0f} µs."
            )
        if np.isfinite(grown := slope(own)):
            held = abs(grown - 1.0) <= _SLOPE
            remarks.append(
                f"- {method}: from {_LINEAR_FROM:.0e} rows on, time grows as the power "
                f"{grown:.2f} of the rows (1 ± {_SLOPE}: {verdict(held)})."
            )
        for one in own:
            if one["rows"] in MOST_SECONDS:
                most = MOST_SECONDS[one["rows"]]
                remarks.append(
                    f"- {method}, {one['rows']:.0e} rows: {one['seconds']:.0f} s, bound "
                    f"{most:.0f} ({verdict(one['seconds'] <= most)})."
                )
            if one["rows"] == 10**6:
                remarks.append(
                    f"- {method}, {one['rows']:.0e} rows: {one['gib']:.2f} GiB, bound {MOST_GIB} "
                    f"({verdict(one['gib'] <= MOST_GIB)})."
                )
    if relevant:
        right = sum(found_relevant(one["weights"]) for one in results)
        remarks.append(
            f"- The three largest weights are those of the relevant views in {right} of "
            f"{len(results)} fits."
        )
    return f"{environment()}\n\n{table}\n\n" + "\n".join(remarks)


def beside(results: list[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    """Table of the grid beside scikit-learn's one model."""
    rows = [
        [
            f"{ours['rows']:.0e}".replace("e+0", "e"),
            f"{ours['seconds']:.1f} ({ours['processor']:.1f})",
            f"{theirs['seconds']:.1f} ({theirs['processor']:.1f})",
            f"{ours['seconds'] / theirs['seconds']:.2f} "
            f"({verdict(ours['seconds'] <= MOST_RATIO * theirs['seconds'])})",
            f"{ours['gib']:.2f}",
            f"{theirs['gib']:.2f}",
            f"{100 * ours['accuracy']:.1f}",
            f"{100 * theirs['accuracy']:.1f}",
        ]
        for ours, theirs in results
    ]
    head = ["rows", "ours s", "theirs s", f"ratio, bound {MOST_RATIO:g}", "ours GiB"]
    table = markdown([*head, "theirs GiB", "ours accuracy %", "theirs accuracy %"], rows)
    return (
        f"{environment()}\n\nSimulated rows, in memory for both. Ours: kernel weights, "
        "certificate, probabilities, and the best of 32 points by five folds. Theirs: one λ, no "
        f"weights.\n\n{table}"
    )


def main(arguments: list[str] | None = None) -> int:
    sets = ["simulated", "pendigits", "scikit-learn"]
    parser = command_line("scale", (__doc__ or "").split("\n", 1)[0], sets)
    parser.add_argument("--most", type=float, default=SIZES[-1], help="most rows (default 1e7)")
    options = parser.parse_args(arguments)
    most = min(options.most, 2000) if options.quick else options.most
    sections = {}
    titles = {"simulated": "Ten views, three of which matter", "pendigits": "Pen strokes"}
    for name in [one for one in options.sets if one in titles]:
        # Folds at ten million rows would tell nothing new.
        runs = [
            run(name, n_rows, method)
            for n_rows in SIZES
            for method in ("single", "grid")
            if n_rows <= most
            and (name == "simulated" or n_rows < SIZES[-1])
            and (method == "single" or n_rows < SIZES[-1])
        ]
        sections[titles[name]] = section(runs, name == "simulated")
    if "scikit-learn" in options.sets:
        sizes = [n_rows for n_rows in SIZES_BESIDE if n_rows <= most] or [1000]
        pairs = [
            (run("simulated", n_rows, "in memory"), run("simulated", n_rows, "scikit-learn"))
            for n_rows in sizes
        ]
        sections["Beside scikit-learn"] = beside(pairs)
    for title, text in sections.items():
        print(f"\n## {title}\n\n{text}")
    if options.write:
        write_sections("scale", HEAD, sections)
    return 0


if __name__ == "__main__":
    sys.exit(main())
