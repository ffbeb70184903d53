"""Whether "converged" can be believed: random fits, judged by an oracle of their own.

    python -m benchmarks.certificates [--sets kernels,joint,regions,features,smooth] [--fits 2500]
        [--first 0] [--seed K] [--results FILE] [--quick] [--write]

Each seed draws an estimator, hard data (low rank, near duplicates, scales 1e12 apart, offsets,
zero and constant kernels, slightly indefinite ones), its parameters (tiny and huge
regularisation, p from 1 to ∞, several solvers and tolerances) and fits it
(:mod:`benchmarks._certificate_problems`); smooth losses are solved without an estimator
(:mod:`benchmarks._certificate_smooth`). The oracle (:mod:`benchmarks._certificate_oracle`)
computes the duality gap again from the kernels and the returned model, in extended precision, and
the objective of what the model predicts for its training rows. A fit that claims to have converged
is listed if that gap, or the distance between the claimed objective and either objective, is above
twice its tolerance; if its weights are outside of their domain; if it crashed; or if it did not
warn and should have. ``--seed`` runs that one alone. With ``--results`` verdicts are kept in a
file, and a run that was stopped goes on from there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks._certificate_problems import (
    Fit,
    draw_joint,
    draw_on_features,
    draw_on_kernels,
    draw_regions,
)
from benchmarks._certificate_smooth import draw_smooth, ordinary_solves
from benchmarks._command import command_line, write_sections
from benchmarks._tables import environment, markdown

# Of every set, and of that of smooth losses.
FITS, FITS_SMOOTH, FITS_QUICK = 2500, 10_000, 50
DRAWN: dict[str, Callable[[int], Fit]] = {
    "kernels": draw_on_kernels,
    "joint": draw_joint,
    "regions": draw_regions,
    "features": draw_on_features,
    "smooth": draw_smooth,
}
TITLES = {
    "kernels": "Kernel matrices",
    "joint": "Regularisation learnt with the weights",
    "regions": "Weights of regions",
    "features": "Explicit features",
    "smooth": "Smooth losses",
}
HEAD = """# Certificates against an oracle

`python -m benchmarks.certificates --write`. Random fits of hard problems. Of those that claim a
gap within their tolerance, an oracle computes the gap again from the data and the model, in
extended precision, and compares the claimed objective with that of the model and that of what it
predicts for its training rows. The largest of the three counts. Weights have to be in their
domain."""
MOST = 2.0
# How far weights may be outside of their domain: rounding errors of a norm.
OUTSIDE = 1e-12


@dataclass(frozen=True)
class Verdict:
    """One fit as the package and as the oracle see it."""

    seed: int
    kind: str
    title: str
    status: str
    claimed: float = 0.0
    found: float = 0.0
    tol: float = 0.0
    rounding: float = 0.0
    warned: bool = False
    outside: float = 0.0

    @property
    def is_wrong(self) -> bool:
        if self.outside > OUTSIDE:
            return True
        if self.status == "certified":
            return not self.found <= MOST * self.tol or self.warned
        return self.status == "crashed" or not (self.warned or self.status == "refused")


def examine(seed: int, kind: str = "kernels") -> Verdict:
    """Draw, fit and judge."""
    fit = DRAWN[kind](seed)
    try:
        # One thread: several would compute features of other blocks of rows than the oracle.
        with threadpool_limits(1):
            model, warned = fit.run()
    except ValueError as error:
        return Verdict(seed, fit.kind, f"{fit.title}: {error}", "refused")
    except Exception as error:
        return Verdict(seed, fit.kind, f"{fit.title}: {error!r}", "crashed")
    certificate = model.certificate_
    bounds = fit.judge(model)
    found = max(bounds.relative_gap, bounds.distance(certificate.primal))
    return Verdict(
        seed=seed,
        kind=fit.kind,
        title=fit.title,
        status=certificate.status,
        claimed=certificate.rel_gap,
        found=found,
        tol=certificate.tol,
        rounding=certificate.rel_rounding,
        warned=warned,
        outside=fit.outside(model),
    )


def examined(kind: str, seeds: range, results: Path | None) -> Iterator[Verdict]:
    """Verdicts of these seeds, those that a file has among them."""
    known = {}
    if results is not None and results.exists():
        lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
        known = {line["seed"]: line for line in lines if line.pop("set") == kind}
    for seed in seeds:
        if seed in known:
            yield Verdict(**known[seed])
            continue
        verdict = examine(seed, kind)
        if results is not None:
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"set": kind, **asdict(verdict)}) + "\n")
        yield verdict


def report(verdicts: list[Verdict]) -> str:
    """Counts by estimator and status, and every fit that claims too much."""
    statuses = ["certified", "limited by rounding", "stopped", "refused", "crashed"]
    kinds = sorted({verdict.kind for verdict in verdicts})
    counts = Counter((verdict.kind, verdict.status) for verdict in verdicts)
    rows = [[kind, *(str(counts[kind, status]) for status in statuses)] for kind in kinds]
    totals = [str(sum(counts[kind, status] for kind in kinds)) for status in statuses]
    wrong = [verdict for verdict in verdicts if verdict.is_wrong]
    above = sum(verdict.status == "certified" for verdict in wrong)
    parts = [
        markdown(["", *statuses], [*rows, ["all", *totals]]),
        f"Of {totals[0]} certified fits {above} are above {MOST:g} · tol, or outside.",
    ]
    if wrong:
        listed = [
            [str(v.seed), f"{v.tol:g}", f"{v.claimed:.1e}", f"{v.found:.1e}", v.title]
            for v in wrong
        ]
        parts.append(markdown(["seed", "tol", "claimed", "found", "fit"], listed))
    return "\n\n".join(parts)


def main() -> None:
    parser = command_line("certificates", __doc__.split("\n")[0], list(DRAWN))
    text = f"how many of each set (default: {FITS}, of smooth losses {FITS_SMOOTH})"
    parser.add_argument("--fits", type=int, help=text)
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--seed", type=int, help="one fit alone")
    parser.add_argument(
        "--results", type=Path, help="a file to keep verdicts in, and to go on from"
    )
    options = parser.parse_args()
    sections = {}
    for kind in options.sets:
        default = FITS_QUICK if options.quick else FITS_SMOOTH if kind == "smooth" else FITS
        n_fits = options.fits or default
        if options.seed is not None:
            print(examine(options.seed, kind))
            continue
        verdicts = []
        seeds = range(options.first, options.first + n_fits)
        for verdict in examined(kind, seeds, options.results):
            verdicts.append(verdict)
            if verdict.is_wrong:
                print(verdict, flush=True)
        parts = [environment(), report(verdicts)]
        if kind == "smooth":
            parts.append(ordinary_solves())
        sections[TITLES[kind]] = "\n\n".join(parts)
        print(f"\n## {TITLES[kind]}\n\n{sections[TITLES[kind]]}", flush=True)
    if options.write and sections:
        write_sections("certificates", HEAD, sections)


if __name__ == "__main__":
    main()
