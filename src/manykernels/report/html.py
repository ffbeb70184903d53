"""The report as one page of HTML: the plain dict, drawn by a template that escapes everything."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..display.base import power_name
from ..utils import versions as tables
from ..utils.files import replacing
from .summary import summarize

# -- Where things are in a picture: plain numbers and paths, which the template draws as SVG ------
#
# Colours are those of the page, light or dark. Lines differ by their dashes and markers as well.


# The picture in units of its own: a phone shows it at four fifths of this size, so that letters
# stay readable.
WIDTH, HEIGHT = 360.0, 230.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 12.0, 26.0, 42.0
# Room between the data and the frame, as part of the range.
_MARGIN = 0.06
# Ticks of an axis, about.
_TICKS = 5
# Values that span at least this factor are on a logarithmic axis, if they are positive.
_DECADE = 10.0
# Markers around a point, as relative paths: circle, square, triangle, diamond, cross, bar.
MARKERS = (
    "m-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0",
    "m-2.7,-2.7h5.4v5.4h-5.4z",
    "m0,-3.6l3.4,6h-6.8z",
    "m0,-3.8l3.8,3.8l-3.8,3.8l-3.8,-3.8z",
    "m-2.8,-2.8l5.6,5.6m0,-5.6l-5.6,5.6",
    "m0,-4v8",
)


@dataclass(frozen=True)
class Axis:
    """From values to places between 0 and 1."""

    low: float
    high: float
    logarithmic: bool
    ticks: list[tuple[float, str]]

    @classmethod
    def over(cls, values: Any, *, logarithmic: bool = False, whole: bool = False) -> Axis:
        """An axis for all of these values; those that are not finite do not count.

        Ticks are at `whole` numbers only if these are counted.
        """
        known = np.asarray(values, dtype=float).ravel()
        known = known[np.isfinite(known)]
        if logarithmic:
            known = np.log10(known[known > 0.0])
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        room = _MARGIN * (high - low) or 0.5
        low, high = low - room, high + room
        ticks = _ticks(low, high, logarithmic)
        return cls(low, high, logarithmic, [one for one in ticks if not whole or one[0] % 1 == 0])

    @classmethod
    def of_names(cls, names: Sequence[str]) -> Axis:
        """An axis with one place for each name, at 0, 1, 2 …"""
        every = -(-len(names) // (_TICKS + 2))
        ticks = [(float(k), name) for k, name in enumerate(names) if k % every == 0]
        return cls(-0.4, len(names) - 0.6, False, ticks)

    def place(self, values: Any) -> np.ndarray:
        """Between 0 and 1; NaN where a value cannot be shown."""
        values = np.asarray(values, dtype=float)
        if self.logarithmic:
            values = np.log10(np.where(values > 0.0, values, np.nan))
        places: np.ndarray = (values - self.low) / (self.high - self.low)
        return places


def _ticks(low: float, high: float, logarithmic: bool) -> list[tuple[float, str]]:
    step = (high - low) / _TICKS
    if logarithmic and high - low >= 1.0:
        whole = max(1, round(step))
        first = int(np.ceil(low / whole)) * whole
        places = np.arange(first, high, whole)
        return [(10.0**place, power_name(10.0**place)) for place in places]
    if logarithmic:
        return [(10.0**place, f"{10.0**place:.2g}") for place in np.linspace(low, high, 3)[1:2]]
    size = 10.0 ** np.floor(np.log10(step))
    nice = next(size * factor for factor in (1.0, 2.0, 5.0, 10.0) if size * factor >= step)
    places = np.arange(np.ceil(low / nice), np.floor(high / nice) + 1) * nice
    # Zero is not to be written as a rounding error of a sum.
    return [(float(place), f"{place + 0.0:.4g}".replace("-", "−")) for place in places]


@dataclass(frozen=True)
class Line:
    """Points that belong together, joined if `joined`, with intervals (low, high) if known."""

    x: Any
    y: Any
    name: str = ""
    intervals: Any = None
    joined: bool = True
    strong: bool = False


def chart(
    title: str,
    description: str,
    lines: Sequence[Line],
    x_axis: Axis,
    y_axis: Axis,
    x_label: str,
    y_label: str,
    *,
    level: tuple[float, str] | None = None,
    diagonal: bool = False,
    ring: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """A picture with a horizontal `level`, a `diagonal` or a `ring` around a point, if wanted."""

    def across(values: Any) -> np.ndarray:
        return _LEFT + x_axis.place(values) * (WIDTH - _LEFT - _RIGHT)

    def down(values: Any) -> np.ndarray:
        return HEIGHT - _BOTTOM - y_axis.place(values) * (HEIGHT - _TOP - _BOTTOM)

    drawn = []
    for number, line in enumerate(lines):
        points = np.column_stack([across(line.x), down(line.y)])
        points = points[np.isfinite(points).all(axis=1)]
        marker = MARKERS[number % len(MARKERS)]
        bars = ""
        if line.intervals is not None:
            ends = zip(across(line.x), *down(np.asarray(line.intervals).T), strict=True)
            bars = "".join(
                f"M{x:.1f},{low:.1f}V{high:.1f}"
                for x, low, high in ends
                if np.isfinite(low + high)
            )
        drawn.append(
            {
                "name": line.name,
                "cue": number % len(MARKERS),
                "strong": line.strong,
                "path": "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
                if line.joined and len(points) > 1
                else "",
                "dots": "".join(f"M{x:.1f},{y:.1f}{marker}" for x, y in points),
                "bars": bars,
                "marker": marker,
            }
        )
    found: dict[str, Any] = {
        "title": title,
        "description": description,
        "x_label": x_label,
        "y_label": y_label,
        "frame": {
            "width": WIDTH,
            "height": HEIGHT,
            "left": _LEFT,
            "right": WIDTH - _RIGHT,
            "top": _TOP,
            "bottom": HEIGHT - _BOTTOM,
        },
        "x_ticks": [{"at": float(across(at)), "text": text} for at, text in x_axis.ticks],
        "y_ticks": [{"at": float(down(at)), "text": text} for at, text in y_axis.ticks],
        "lines": drawn,
    }
    if level is not None:
        found["level"] = {"at": float(down(level[0])), "text": level[1]}
    if diagonal:
        low, high = max(x_axis.low, y_axis.low), min(x_axis.high, y_axis.high)
        found["diagonal"] = [float(across(low)), float(down(low)), float(across(high))]
        found["diagonal"].append(float(down(high)))
    if ring is not None:
        found["ring"] = [float(across(ring[0])), float(down(ring[1]))]
    return found


# -- the pictures of a report ----------------------------------------------------------------


def convergence_chart(history: dict[str, Any], tol: float | None) -> dict[str, Any]:
    """The measure of a history against the number of inner solves."""
    x, machines = np.array(history["n_inner_solves"]), np.array(history["machines"])
    y = np.array([np.nan if value is None else value for value in history["values"]], dtype=float)
    every = [*y, *([] if tol is None else [tol])]
    lines = [Line(x[machines == one], y[machines == one]) for one in np.unique(machines)]
    return chart(
        "The way there",
        f"From {y[0]:.1e} to {y[-1]:.1e} in {x[-1]} inner solves.",
        lines,
        Axis.over(x, whole=True),
        Axis.over(every, logarithmic=True),
        "inner solves",
        history["measure"],
        level=None if tol is None else (tol, f"asked for: {power_name(tol)}"),
    )


def choice_chart(curve: dict[str, Any]) -> dict[str, Any]:
    """Mean scores over a grid; `curve` is the data of a ValidationDisplay."""
    values = np.array(
        [np.nan if value is None else value for value in curve["values"]], dtype=float
    )
    spread = np.isfinite(values).all() and (values > 0.0).all()
    if spread and values.max() >= _DECADE * values.min():
        x, x_axis = values, Axis.over(values, logarithmic=True)
    else:
        # What is not finite has become None.
        x_axis = Axis.of_names([power_name(np.inf if np.isnan(v) else v) for v in values])
        x = np.arange(len(values))
    scores, errors = (
        np.array([[np.nan if v is None else v for v in row] for row in curve[name]], dtype=float)
        for name in ("scores", "errors")
    )
    errors = np.nan_to_num(errors)
    bars = np.stack([scores - errors, scores + errors], axis=-1)
    picked = curve["chosen"]
    lines = [
        Line(x, scores[i], curve["line_names"][i], bars[i], strong=i == picked[0])
        for i in range(len(scores))
    ]
    letter = {"reg": "λ", "epsilon": "ε", "n_regions": "regions"}.get(
        curve["parameter"], curve["parameter"]
    )
    best = scores[picked[0], picked[1]]
    return chart(
        "Scores of held-out samples",
        f"Mean scores of {len(scores)} lines along {len(values)} values of {letter}; the chosen "
        f"point, with the score {best:.3f}, is ringed. Bars are one standard error.",
        lines,
        x_axis,
        Axis.over(bars),
        letter,
        "mean score",
        ring=(float(x[picked[1]]), float(best)),
    )


def calibration_chart(calibration: dict[str, Any]) -> dict[str, Any]:
    """Shares that happened against probabilities that were said."""
    said, happened = ([one[key] for one in calibration["bins"]] for key in ("said", "happened"))
    intervals = [(one["low"], one["high"]) for one in calibration["bins"]]
    unit = Axis.over([0.0, 1.0])
    return chart(
        "Calibration",
        f"{len(said)} groups of samples: the share that happened against the {calibration['of']}. "
        "On the dashed line both are the same.",
        [Line(said, happened, "", intervals)],
        unit,
        unit,
        "predicted probability",
        "observed share",
        diagonal=True,
    )


def prediction_chart(target: dict[str, Any]) -> dict[str, Any]:
    """Predicted values against true ones."""
    points = np.array(target["points"], dtype=float)
    axis = Axis.over(points)
    name = f", {target['name']}" if target["name"] else ""
    return chart(
        f"Predicted and true values{name}",
        f"{len(points)} samples. On the dashed line predictions are right.",
        [Line(points[:, 0], points[:, 1], joined=False)],
        axis,
        axis,
        "true value",
        "predicted",
        diagonal=True,
    )


def interval_track(
    rows: Sequence[dict[str, Any]], key: str, reference: float | None
) -> list[dict[str, Any] | None]:
    """Values with intervals on one scale for all rows, in per cent of the width of a cell."""
    names = (key, f"{key}_low", f"{key}_high")
    table = np.array(
        [[np.nan if row[name] is None else row[name] for name in names] for row in rows],
        dtype=float,
    )
    axis = Axis.over([*table.ravel(), *([] if reference is None else [reference])])
    line = None if reference is None else 100.0 * float(axis.place(reference))
    return [
        dict(zip(("at", "low", "high"), (100.0 * axis.place(row)).tolist(), strict=True))
        | {"line": line}
        if np.isfinite(row).all()
        else None
        for row in table
    ]


# Parts of the dict that are sections of the page, in their order; each has a template.
_SECTIONS = {
    "learnt": "What was learnt",
    "importance": "What each view is worth",
    "judged": "Predictions",
    "gate": "What the gate does",
    "proof": "Proof",
    "choice": "What was chosen",
    "alignment": "How alike the kernels are",
    "data": "The data",
    "reproduce": "To do it again",
}
# Kernels that are listed at once; the others can be unfolded.
_LISTED = 25
# Height of the frame in a notebook, in pixels: most of a screen.
_FRAME_HEIGHT = 640


@dataclass(frozen=True)
class Report:
    """What was learnt, as one page; made by :func:`report`.

    In a notebook it shows itself.

    Attributes
    ----------
    data : dict
        Everything that the page says, as plain values: ``json.dumps(report.data)`` works.
    """

    data: dict[str, Any] = field(repr=False)

    @cached_property
    def html(self) -> str:
        """The page: no scripts, nothing that is loaded from elsewhere."""
        return str(_template().render(_drawn(self.data)))

    def save(self, path: str | Path) -> None:
        """Write the page, as a whole or not at all."""
        contents = self.html.encode()
        with replacing(path, len(contents)) as file:
            file.write(contents)

    def _repr_html_(self) -> str:
        # A frame of its own keeps the styles of the page and of the notebook apart.
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="" loading="lazy" '
            f'title="Report of {escape(self.data["estimator"])}" '
            f'style="width: 100%; height: {_FRAME_HEIGHT}px; border: 1px solid #8888"></iframe>'
        )

    def __repr__(self) -> str:
        answers = "; ".join(f"{one['question']} {one['answer']}" for one in self.data["answers"])
        return f"Report of {self.data['estimator']}: {answers}"


def report(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    importance: Any = "auto",
    new: bool | None = None,
    path: str | Path | None = None,
) -> Report:
    """What a fitted model has learnt, how sure that is and how good it is, as one page of HTML.

    The page needs nothing else: no network, no scripts. It has kernel weights, the certificate and
    how the gap closed, and what was chosen by cross-validation; given samples also predictions
    judged, what each view is worth, how alike kernels are, and checks of the data. At its end are
    parameters and versions, to do it again. What was not computed is said, and why.

    Parameters
    ----------
    estimator : fitted estimator of this package
    X, y : as for ``estimator.fit``, optional
        The training samples, or new ones. Predictions are judged by samples that the model has not
        learnt from: new rows of X or, where X are the training samples, answers about each of them
        if it is left out, which some estimators know. A score on training samples is never given.
    importance : {"auto", True, False} or ViewImportance, default="auto"
        What each view is worth, by :func:`~manykernels.view_importance`, or its result. That
        learns many models; "auto" does it for training samples of up to 300 rows and 12 views,
        without a search.
    new : bool, optional
        Whether X are new samples. By default rows are compared with those that the model keeps.
    path : str or Path, optional
        Where to save the page.

    Returns
    -------
    report : Report
        ``report.save(path)`` writes it, ``report.html`` is the page, ``report.data`` what it says.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from manykernels import MKFDACV
    >>> from manykernels.report import report
    >>> X, y = load_iris(return_X_y=True)
    >>> X, X_new, y, y_new = train_test_split(X, y, random_state=0)
    >>> model = MKFDACV(ps=[1, 2], regs=[0.1, 1]).fit(X, y)
    >>> page = report(model, X_new, y_new)
    >>> page.data["judged"]["how"]
    '38 new samples'
    >>> page.html.startswith("<!DOCTYPE html>")
    True
    """
    if path is not None:
        _template()  # tells that something is missing before the work rather than after it
    made = Report(summarize(estimator, X, y, importance=importance, new=new))
    if path is not None:
        made.save(path)
    return made


# -- from the dict to the page ---------------------------------------------------------------


def _drawn(data: dict[str, Any]) -> dict[str, Any]:
    """The dict with its pictures."""
    pictures: dict[str, Any] = {}
    proof, choice, judged = (data.get(name) for name in ("proof", "choice", "judged"))
    if proof and "history" in proof:
        tol = proof["certificates"][0]["tol"] if proof["convex"] else None
        pictures["convergence"] = convergence_chart(proof["history"], tol)
    if choice and "curve" in choice and choice["n_points"] > 1:
        pictures["choice"] = choice_chart(choice["curve"])
    if judged and "calibration" in judged:
        pictures["calibration"] = calibration_chart(judged["calibration"])
    if judged and "targets" in judged:
        pictures["predictions"] = [prediction_chart(one) for one in judged["targets"]]
    if importance := data.get("importance"):
        rows = importance["rows"]
        pictures["falls"] = interval_track(rows, "fall", 0.0)
        pictures["alone"] = interval_track(rows, "alone", importance["score"])
    shares = data["learnt"]["mean_shares"]
    return {
        **data,
        "pictures": pictures,
        "sections": [
            {"id": name, "title": title} for name, title in _SECTIONS.items() if name in data
        ],
        "kernel_order": sorted(range(len(shares)), key=lambda j: -shares[j]),
        # Bars are as long as the cell for the largest; without weights there are none.
        "most_of_kernels": max(shares) or 1.0,
        "most_of_views": max(one["share"] for one in data["learnt"]["view_shares"]) or 1.0,
        "most_of_groups": max(max(one["shares"]) for one in data["learnt"]["groups"]) or 1.0,
        "listed": _LISTED,
    }


@cache
def _template() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError('report needs jinja2: pip install "manykernels[report]".') from error
    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(_FILTERS)
    return environment.get_template("report.html")


def shown(text: Any) -> str:
    """Text without what HTML files cannot hold: control characters and halves of characters."""
    return "".join(
        "�" if unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t" else letter
        for letter in str(text)
    )


def shortened(text: Any) -> str:
    """A name without its middle if it is long; the page has the whole name in a tooltip."""
    return tables.shortened(shown(text))


def _sentence(text: Any) -> str:
    """A sentence of ours, whose numbers are not broken at the hyphen of an exponent."""
    return re.sub(r"(?<=\de)-(?=\d)", "−", shown(text))


def _number(spec: str) -> Callable[[Any], str]:
    def written(value: Any) -> str:
        return "–" if value is None else format(value, spec).replace("-", "−")

    return written


def _interval(low: Any, high: Any, spec: str = ".3f") -> str:
    if low is None or high is None:
        return ""
    return f"[{format(low, spec)}, {format(high, spec)}]".replace("-", "−")


_FILTERS: dict[str, Callable[..., str]] = {
    "shown": shown,
    "shortened": shortened,
    "sentence": _sentence,
    "score": _number(".3f"),
    "signed": _number("+.3f"),
    "weight": _number(".4g"),
    "percent": _number(".1%"),
    "whole_percent": _number(".0%"),
    "general": _number(".6g"),
    "short": _number(".3g"),
    "interval": _interval,
}
