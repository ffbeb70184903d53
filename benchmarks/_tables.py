"""What the pages of the benchmarks are made of."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import joblib

from manykernels import __version__
from manykernels.utils.versions import markdown

__all__ = [
    "ABOVE",
    "BELOW",
    "WITHIN",
    "PaperRow",
    "counted",
    "environment",
    "environments",
    "markdown",
    "measured_with",
    "paper_table",
    "standard_error",
    "verdict",
]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "clarabel", "highspy", "numba")


def measured_with() -> dict[str, Any]:
    """Versions and machine, as plain values."""
    versions = {package: version(package) for package in _PACKAGES}
    return {
        "versions": {"manykernels": __version__, **versions, "Python": platform.python_version()},
        "machine": f"{platform.system()} {platform.machine()}, {joblib.cpu_count()} cores",
    }


def environment(measured: dict[str, Any] | None = None) -> str:
    """What the figures were measured with, one line; this process if None.

    An `earlier` entry says that the figures are those of a page that was not made of values.
    """
    measured = measured or measured_with()
    versions = ", ".join(f"{package} {number}" for package, number in measured["versions"].items())
    earlier = f" {measured['earlier']}" if "earlier" in measured else ""
    return f"{versions}; {measured['machine']}.{earlier}"


def environments(results: dict[str, dict[str, Any]]) -> str:
    """What the parts of a benchmark were measured with, a line each if they differ."""
    lines: dict[str, list[str]] = {}
    for name, part in results.items():
        lines.setdefault(environment(part["environment"]), []).append(name)
    if len(lines) == 1:
        return next(iter(lines))
    return "\n".join(f"- {', '.join(names)}: {line}" for line, names in lines.items())


def verdict(held: bool) -> str:
    return "held" if held else "MISSED"


# -- rows beside those of a paper -----------------------------------------------------------------

WITHIN = "within two standard errors"
ABOVE = "above"
BELOW = "below"


@dataclass(frozen=True)
class PaperRow:
    """A figure of a paper and ours.

    `error` is the standard error of the difference of the two. `reason` says why ours is better
    or worse by more than two of them, and what showed it; leave it empty if that was not tested.
    """

    paper: str
    #: Table or figure, as the paper counts them.
    place: str
    data: str
    method: str
    theirs: float
    ours: float
    error: float
    lower_is_better: bool = False
    #: False if other data stand in for the paper's.
    same_data: bool = True
    reason: str = ""

    @property
    def outcome(self) -> str:
        """`WITHIN`, `ABOVE` (better than the paper) or `BELOW` (worse)."""
        better = self.theirs - self.ours if self.lower_is_better else self.ours - self.theirs
        if abs(better) <= 2.0 * self.error:
            return WITHIN
        return ABOVE if better > 0 else BELOW

    @property
    def verdict(self) -> str:
        """The outcome, and its reason unless it is within two standard errors."""
        if self.outcome == WITHIN:
            return WITHIN
        return f"{self.outcome}: {self.reason}" if self.reason else f"{self.outcome}, unexplained"


def standard_error(*means: tuple[float, int]) -> float:
    """Standard error of the difference of means, each the deviation and number of its values."""
    return float(sum(deviation**2 / number for deviation, number in means) ** 0.5)


def paper_table(
    rows: Iterable[PaperRow], digits: int = 2, more: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Rows of one table of a paper beside ours, with verdicts; `more` are further columns."""
    others = more or {}
    cells = [
        [
            row.data if row.same_data else f"{row.data} (stand-in)",
            row.method,
            f"{row.ours:.{digits}f}",
            f"{row.theirs:.{digits}f}",
            f"{row.error:.{digits}f}",
            *(column[i] for column in others.values()),
            row.verdict,
        ]
        for i, row in enumerate(rows)
    ]
    header = ["data", "method", "ours", "paper", "standard error", *others, "verdict"]
    return markdown(header, cells, n_left=2)


def counted(rows: Iterable[PaperRow]) -> str:
    """How many rows lie within two standard errors of the paper, above and below."""
    rows = list(rows)
    counts = []
    for outcome in (WITHIN, ABOVE, BELOW):
        reasons = [row.reason for row in rows if row.outcome == outcome]
        if not reasons:
            continue
        count = f"{len(reasons)} {outcome}"
        unexplained = sum(not reason for reason in reasons)
        if outcome != WITHIN and unexplained:
            count += f" ({unexplained} unexplained)"
        counts.append(count)
    return f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}: {', '.join(counts)}"
