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
import os
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks._command import Results, command_line, report
from benchmarks._scale_problems import RELEVANT
from benchmarks._tables import environments, markdown, verdict

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
# Models of the grid: 32 points in five folds.
N_MODELS = 160
METHODS_BESIDE = ["in memory", "scikit-learn"]
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

TITLES = {"simulated": "Ten views, three of which matter", "pendigits": "Pen strokes"}
BESIDE = "scikit-learn"
SETS = [*TITLES, BESIDE]


def run(problem: str, n_rows: int, method: str, sources: str | None = None) -> dict[str, Any]:
    """One fit in another process; with other `sources`, by that version."""
    command = [sys.executable, "-m", "benchmarks._scale_runner", problem, str(n_rows), method]
    environment = dict(os.environ)
    if method in METHODS_BESIDE:
        environment |= dict.fromkeys(_THREADS, "1")
    if sources is not None:
        environment["PYTHONPATH"] = sources
    answer = subprocess.run(command, capture_output=True, text=True, env=environment)
    if answer.returncode:
        reason = (answer.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"{' '.join(command[2:])}: {reason}")
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    print(
        f"{problem:10s} {n_rows:>9d} {method:12s} {found['seconds']:8.1f} s "
        f"({found['processor']:.1f} s of processors)  {found['gib']:.2f} GiB  "
        f"accuracy {found['accuracy']:.4f}",
        flush=True,
    )
    return found


def slope(fits: list[dict[str, Any]]) -> float:
    """Growth of time with rows, as a power, over those where it should be one."""
    long = [fit for fit in fits if fit["rows"] >= _LINEAR_FROM]
    if len(long) < 2:
        return float("nan")
    logs = np.log([[fit["rows"], fit["seconds"]] for fit in long])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def found_relevant(shares: dict[str, float]) -> bool:
    """Whether the largest weights are those of the relevant views."""
    best = sorted(shares, key=shares.__getitem__, reverse=True)[: len(RELEVANT)]
    return set(best) == {f"view{j}" for j in RELEVANT}


def table(fits: list[dict[str, Any]]) -> str:
    """Markdown table of the fits of one problem."""
    rows = []
    for fit in fits:
        best = sorted(fit["shares"].items(), key=lambda item: -item[1])[:3]
        rows.append(
            [
                _rows(fit),
                fit["method"],
                _seconds(fit),
                f"{fit['gib']:.2f}",
                f"{fit['rel_gap']:.0e}",
                str(fit["factorisations"]),
                f"{100 * fit['accuracy']:.1f}",
                ", ".join(f"{name} {share:.2f}" for name, share in best),
                fit.get("chosen", ""),
            ]
        )
    head = ["rows", "", "seconds (of processors)", "GiB", "gap", "factorisations", "accuracy %"]
    return markdown([*head, "largest shares of the weights", "chosen"], rows)


def verdicts(fits: list[dict[str, Any]], relevant: bool) -> list[str]:
    """What of the bounds the fits of one problem held, a line each."""
    lines = []
    for method in ("single", "grid"):
        same = [fit for fit in fits if fit["method"] == method]
        for small, large in pairwise([fit for fit in same if fit["rows"] >= _LINEAR_FROM]):
            more = large["seconds"] - small["seconds"]
            lines.append(
                f"{method}: from {small['rows']:.0e} to {large['rows']:.0e} rows each further "
                f"row takes {1e6 * more / (large['rows'] - small['rows']):.0f} µs."
            )
        if np.isfinite(grown := slope(same)):
            held = abs(grown - 1.0) <= _SLOPE
            lines.append(
                f"{method}: from {_LINEAR_FROM:.0e} rows on, time grows as the power "
                f"{grown:.2f} of the rows (1 ± {_SLOPE}: {verdict(held)})."
            )
        for fit in same:
            if fit["rows"] in MOST_SECONDS:
                most = MOST_SECONDS[fit["rows"]]
                lines.append(
                    f"{method}, {fit['rows']:.0e} rows: {fit['seconds']:.0f} s, bound "
                    f"{most:.0f} ({verdict(fit['seconds'] <= most)})."
                )
            if fit["rows"] == 10**6:
                lines.append(
                    f"{method}, {fit['rows']:.0e} rows: {fit['gib']:.2f} GiB, bound {MOST_GIB} "
                    f"({verdict(fit['gib'] <= MOST_GIB)})."
                )
    if relevant:
        right = sum(found_relevant(fit["shares"]) for fit in fits)
        lines.append(
            f"The three largest weights are those of the relevant views in {right} of "
            f"{len(fits)} fits."
        )
    return lines


def beside(fits: list[dict[str, Any]]) -> str:
    """Table of the grid beside scikit-learn's one model, which follows it in `fits`."""
    rows = [
        [
            _rows(ours),
            _seconds(ours),
            _seconds(theirs),
            f"{ours['processor'] / theirs['processor']:.2f} "
            f"({verdict(ours['processor'] <= MOST_RATIO * theirs['processor'])})",
            f"{ours['earlier'] / theirs['processor']:.2f}" if "earlier" in ours else "",
            str(ours["grid solves"]) if "grid solves" in ours else "",
            f"{ours['gib']:.2f}",
            f"{theirs['gib']:.2f}",
            f"{100 * ours['accuracy']:.1f}",
            f"{100 * theirs['accuracy']:.1f}",
        ]
        for ours, theirs in zip(fits[::2], fits[1::2], strict=True)
    ]
    ratio = f"ratio of processors, bound {MOST_RATIO:g}"
    head = ["rows", "ours s", "theirs s", ratio, "earlier", "factorisations", "ours GiB"]
    return markdown([*head, "theirs GiB", "ours accuracy %", "theirs accuracy %"], rows)


def least_ratios(fits: list[dict[str, Any]]) -> str:
    """What one factorisation for every model of the grid would take, beside the one model."""
    lines = []
    for ours, theirs in zip(fits[::2], fits[1::2], strict=True):
        if "grid solves" in ours:
            each = ours["processor"] / ours["grid solves"]
            lines.append(
                f"{_rows(ours)} rows: {each:.2f} s of the processor for each factorisation and "
                f"what it serves. One for each of the {N_MODELS} models of the grid is the least "
                f"with a certificate for each, {N_MODELS * each / theirs['processor']:.1f} times "
                "their one model."
            )
    return "\n".join(f"- {line}" for line in lines)


def page(results: Results) -> str:
    """The page of the documentation."""
    parts = [
        "# Any number of rows",
        "Written by `python -m benchmarks.scale --write`. Ten Gaussian kernels with 200 landmarks "
        "each, 2000 features. Two passes over rows of dask, drawn when they are read, none of "
        "them kept. *single*: `MKFDA` at p = 1 and one λ. *grid*: `MKFDACV`, 32 points judged by "
        "five folds, whose moments are summed in the same pass. Each fit is a process of its own; "
        "seconds are wall-clock and include the drawing of rows, memory is the peak that the "
        "process itself holds. Accuracy is that on fresh rows.",
        environments(results),
    ]
    for name in SETS:
        # Each size is a part.
        fits = [
            fit
            for title, part in results.items()
            if title.startswith(name)
            for fit in part["fits"]
        ]
        if fits and name == BESIDE:
            parts += [
                "## Beside scikit-learn",
                "Simulated rows, in memory for both; seconds in brackets are those of the "
                f"processor, with one BLAS thread{_older(results)}. Ours: kernel weights, "
                "certificate, probabilities, and the best of 32 points by five folds, with so "
                "many factorisations of a matrix of 2000 rows. Theirs: one λ, no weights. "
                "Earlier: the ratio of the version before, which scaled features again at every "
                "point.",
                beside(fits),
                least_ratios(fits),
            ]
        elif fits:
            lines = verdicts(fits, name == "simulated")
            parts += [f"## {TITLES[name]}", table(fits), "\n".join(f"- {line}" for line in lines)]
    return "\n\n".join(parts) + "\n"


def _older(results: Results) -> str:
    """Say which parts beside scikit-learn were measured before there was a limit on threads."""
    older = [
        title.removeprefix(BESIDE).strip()
        for title, part in results.items()
        if title.startswith(BESIDE) and "earlier" in part["environment"]
    ]
    return f" ({', '.join(older)} rows: with two)" if older else ""


def _rows(fit: dict[str, Any]) -> str:
    return f"{fit['rows']:.0e}".replace("e+0", "e")


def _seconds(fit: dict[str, Any]) -> str:
    return f"{fit['seconds']:.1f} ({fit['processor']:.1f})"


def methods(name: str, n_rows: int) -> list[str]:
    """What is fitted to so many rows of a set."""
    if name == BESIDE:
        return METHODS_BESIDE
    # Folds at ten million rows would tell nothing new, nor would more pen strokes.
    if n_rows == SIZES[-1]:
        return ["single"] if name == "simulated" else []
    return ["single", "grid"]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark, a part of the results for each set and number of rows."""
    parser = command_line("scale", (__doc__ or "").split("\n", 1)[0], SETS)
    parser.add_argument("--most", type=float, default=SIZES[-1], help="most rows (default 1e7)")
    parser.add_argument("--earlier", metavar="SOURCES", help="sources of an earlier version")
    options = parser.parse_args(arguments)
    most = min(options.most, 2000) if options.quick else options.most
    results: Results = {}
    for name in options.sets:
        sizes = SIZES_BESIDE if name == BESIDE else SIZES
        for n_rows in [size for size in sizes if size <= most] or [SIZES[0]]:
            problem = "simulated" if name == BESIDE else name
            fits = [run(problem, n_rows, method) for method in methods(name, n_rows)]
            if name == BESIDE and options.earlier:
                before = run(problem, n_rows, METHODS_BESIDE[0], options.earlier)
                fits[0]["earlier"] = before["processor"]
            if fits:
                results[f"{name} {n_rows:.0e}"] = {"fits": fits}
    order = [f"{name} {n_rows:.0e}" for name in SETS for n_rows in sorted({*SIZES, *SIZES_BESIDE})]
    report("scale", results, page, options.write, order)
    return 0


if __name__ == "__main__":
    sys.exit(main())
