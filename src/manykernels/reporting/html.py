"""The report as an HTML page, rendered from the dict of its contents."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..display import (
    ColumnImportanceDisplay,
    ConvergenceDisplay,
    ImportanceDisplay,
    SurvivalCalibrationDisplay,
    SurvivalDisplay,
    ValidationDisplay,
)
from ..display.base import BLUE, COLORS, GREY, GUIDE, Display, bare, cue, pyplot
from ..display.validation import parameter_name
from ..estimators.base import KernelEstimator
from ..inspection import ColumnImportance, ViewImportance
from ..kernels.tables import Table
from ..utils import versions as tables
from ..utils.files import replacing
from .summary import summarize

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# -- Pictures ------------------------------------------------------------------------------------
#
# Displays draw them; their colours become those of the page, light or dark.

# Font sizes, in points. On a phone a picture is shown at five eighths of its size; three panels
# side by side are shown as they are and scrolled.
_FONT_SIZE, _FONT_SIZE_OF_PANELS = 15.0, 10.0
# Colours of displays, and the variables of the page's style sheet that stand for them.
_COLORS = {
    **{color: f"var(--c{number})" for number, color in enumerate(COLORS)},
    GREY: "var(--quiet)",
}


@dataclass(eq=False)
class DiagonalDisplay(Display):
    """Points beside the diagonal on which both coordinates are equal.

    Parameters
    ----------
    x, y : array-like of shape (n_points,)
    x_label, y_label : str
    intervals : array-like of shape (n_points, 2), optional
        Low and high ends around `y`. Points with intervals are joined by a line.
    """

    x: ArrayLike
    y: ArrayLike
    x_label: str
    y_label: str
    intervals: ArrayLike | None = None

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw on `ax`, or in a new figure."""
        ax = self._begin(ax, (6.4, 4.2))
        x, y = np.asarray(self.x, dtype=float), np.asarray(self.y, dtype=float)
        style = {**cue(0), "linestyle": "none" if self.intervals is None else "-", **kwargs}
        if self.intervals is None:
            style = {"alpha": 0.55, **style}
        else:
            ax.vlines(x, *np.asarray(self.intervals, dtype=float).T, color=BLUE, linewidth=1.0)
        ax.plot(x, y, **style)
        ends = np.nanmin([x, y]), np.nanmax([x, y])
        ax.plot(ends, ends, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
        ax.set(xlabel=self.x_label, ylabel=self.y_label)
        ax.grid(axis="y", **GUIDE)
        bare(ax, "bottom")
        return self


def picture(
    display: Display, name: str, title: str, description: str, font_size: float = _FONT_SIZE
) -> dict[str, Any]:
    """Draw a display for the page: a dict with its title, description and ``<svg>`` element.

    `name` is a prefix of the ids in the SVG, which must be unique on the page.
    """
    from markupsafe import Markup

    with pyplot().rc_context({"font.size": font_size}), warnings.catch_warnings():
        # Browsers have other fonts than matplotlib.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        svg = display.to_svg()
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    for color, variable in _COLORS.items():
        svg = svg.replace(color, variable)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'\b(?:xlink:)?href="#', f'href="#{name}-', svg).replace("url(#", f"url(#{name}-")
    box = re.search(r'viewBox="[^"]*"', svg)
    assert box is not None
    heading = Markup(
        '<svg {} role="img" aria-labelledby="{name}-title {name}-desc">\n'
        '<title id="{name}-title">{}</title>\n<desc id="{name}-desc">{}</desc>'
    ).format(Markup(box[0]), shown(title), shown(description), name=name)
    content = Markup(svg[svg.index(">", box.end()) + 1 :])
    return {"title": title, "description": description, "svg": heading + content}


def _floats(values: object) -> Any:
    """Convert plain data to floats: NaN where a number is not finite, and so None."""
    return np.asarray(values, dtype=float)


def convergence_picture(history: dict[str, Any], tol: float | None) -> dict[str, Any]:
    """Draw the convergence measure against the number of inner solves."""
    measure, values = history["attribute"], history["values"]
    solves = {"n_inner_solves": history["n_inner_solves"], "machine": history["machines"]}
    display = ConvergenceDisplay(
        {"": {**solves, measure: values}}, {} if tol is None else {"": tol}, measure
    )
    first, last = _floats([values[0], values[-1]])
    n_solves = history["n_inner_solves"][-1]
    text = f"From {first:.1e} to {last:.1e} in {n_solves} inner solves."
    return picture(display, "convergence", "Convergence", text)


def choice_picture(curve: dict[str, Any]) -> dict[str, Any]:
    """Draw the mean scores over a grid; `curve` is the data of a ValidationDisplay."""
    # Plain data have None in place of numbers that are not finite.
    values = [np.inf if value is None else value for value in curve["values"]]
    best = None if curve["best"] is None else _floats(curve["best"])
    scoring = shown(curve["scoring"])
    display = ValidationDisplay(**{**curve, "values": values, "best": best, "scoring": scoring})
    i, k = curve["chosen"]
    letter = parameter_name(curve["parameter"])
    text = (
        f"Mean scores of {len(curve['scores'])} lines along {len(values)} values of {letter}; the "
        f"chosen point, with the score {display.scores[i, k]:.3f}, is ringed. Bars are one "
        "standard error."
    )
    return picture(display, "choice", "Scores of held-out samples", text) | {"x_label": letter}


def calibration_picture(calibration: dict[str, Any]) -> dict[str, Any]:
    """Draw observed frequencies against predicted probabilities."""
    bins = calibration["bins"]
    predicted, observed = ([group[key] for group in bins] for key in ("said", "happened"))
    intervals = [(group["low"], group["high"]) for group in bins]
    axes = "predicted probability", "observed share"
    return picture(
        DiagonalDisplay(predicted, observed, *axes, intervals),
        "calibration",
        "Calibration",
        f"{len(bins)} groups of samples: the observed share against the {calibration['of']}. "
        "On the dashed line both are equal.",
    )


def curves_picture(curves: dict[str, Any]) -> dict[str, Any]:
    """Draw Kaplan–Meier curves of groups of risk; `curves` are the data of a SurvivalDisplay."""
    text = (
        "Kaplan–Meier curves of the samples with the lowest, medium and highest risks, with the "
        "numbers still observed. The further the curves are apart, the better are the risks."
    )
    return picture(SurvivalDisplay(**curves), "curves", "Survival by predicted risk", text)


def survival_picture(calibration: dict[str, Any]) -> dict[str, Any]:
    """Draw observed against predicted survival; the data of a SurvivalCalibrationDisplay."""
    groups = calibration["groups"]
    outputs = "its held-out risk" if calibration["held_out"] else "its predicted risk"
    return picture(
        SurvivalCalibrationDisplay(**groups),
        "survival",
        f"Survival up to the time {groups['horizon']:.4g}",
        f"{len(groups['sizes'])} groups of samples with similar predictions: the Kaplan–Meier "
        "estimate against the mean predicted probability. Half of the events are earlier. The "
        f"probability of a sample is computed from {outputs} and the baseline hazard of the "
        "fitted model. On the dashed line both are equal.",
        font_size=_FONT_SIZE_OF_PANELS,
    )


def prediction_picture(target: dict[str, Any], number: int) -> dict[str, Any]:
    """Draw predicted values against true ones."""
    true, predicted = np.array(target["points"], dtype=float).T
    name = f", {target['name']}" if target["name"] else ""
    return picture(
        DiagonalDisplay(true, predicted, "true value", "predicted"),
        f"prediction-{number}",
        f"Predicted and true values{name}",
        f"{len(true)} samples. On the dashed line predictions are right.",
    )


# Number of kernels, or of views, that are listed; the others can be unfolded.
_LISTED = 25
# Number of targets with a picture.
_DRAWN = 6


def importance_picture(importance: dict[str, Any]) -> dict[str, Any]:
    """Draw falls, scores alone and shares of weight of the views."""
    rows, names = importance["rows"][:_LISTED], ("fall", "alone", "weight")
    scores = ("score", "score_interval", "gain", "gain_interval")
    display = ImportanceDisplay(
        names=[shown(row["view"]) for row in rows],
        **{name: _floats([row[name] for row in rows]) for name in (*names, "chosen")},
        **{
            f"{name}_interval": _floats(
                [[row[f"{name}_low"], row[f"{name}_high"]] for row in rows]
            )
            for name in names
        },
        **{name: _floats(importance[name]) for name in scores},
        resampled_weights=np.empty((0, len(rows))),
        scoring=shown(importance["scoring"]),
        confidence=importance["confidence"],
    )
    text = (
        "The fall of the score without each view, its score alone, and its share of the weights."
    )
    if len(rows) < len(importance["rows"]):
        text += f" The {len(rows)} views with the largest falls are drawn."
    return picture(display, "importance", "Views compared", text, font_size=_FONT_SIZE_OF_PANELS)


def columns_picture(columns: dict[str, Any]) -> dict[str, Any]:
    """Draw the importance of the columns that are listed."""
    rows = columns["rows"]
    display = ColumnImportanceDisplay(
        [shown(row["column"]) for row in rows],
        _floats([row["importance"] for row in rows]),
        _floats([[row["low"], row["high"]] for row in rows]),
        np.array([row["selected"] for row in rows]),
        _floats([row["stability"] for row in rows]),
        title=columns["title"],
        caption=columns["caption"],
    )
    text = f"{columns['title']}, by column."
    return picture(display, "columns", "Columns compared", text, font_size=_FONT_SIZE_OF_PANELS)


# Sections of the page, in their order, by their keys in the dict; each has a template.
_SECTIONS = {
    "learnt": "Kernel weights",
    "importance": "Importance of the views",
    "columns": "Importance of the columns",
    "judged": "Predictions",
    "gate": "Gate",
    "proof": "Certificate",
    "choice": "Model selection",
    "alignment": "Alignment of the kernels",
    "data": "Data",
    "reproduce": "Parameters and versions",
}
# Height of the frame in a notebook, in pixels: most of a screen.
_FRAME_HEIGHT = 640


@dataclass(frozen=True)
class Report:
    """Report of a fitted model, returned by :func:`report`.

    Notebooks display the page.

    Attributes
    ----------
    data : dict
        Contents of the page as plain values: ``json.dumps(report.data)`` works.
    """

    data: dict[str, Any] = field(repr=False)

    @cached_property
    def html(self) -> str:
        """The page, without scripts and external resources."""
        return str(_template().render(_context(self.data)))

    def save(self, path: str | Path) -> None:
        """Write the page to a file, completely or not at all."""
        contents = self.html.encode()
        with replacing(path, len(contents)) as file:
            file.write(contents)

    def _repr_html_(self) -> str:
        # A frame separates the style sheets of the page and of the notebook.
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="" loading="lazy" '
            f'title="Report of {escape(self.data["estimator"])}" '
            f'style="width: 100%; height: {_FRAME_HEIGHT}px; border: 1px solid #8888"></iframe>'
        )

    def __repr__(self) -> str:
        answers = "; ".join(
            f"{answer['question']} {answer['answer']}" for answer in self.data["answers"]
        )
        return f"Report of {self.data['estimator']}: {answers}"


def report(
    estimator: KernelEstimator,
    X: Table = None,
    y: ArrayLike | None = None,
    *,
    importance: bool | str | ViewImportance = "auto",
    columns: bool | ColumnImportance = False,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    entry: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    new: bool | None = None,
    path: str | Path | None = None,
) -> Report:
    """Create an HTML report of a fitted model.

    The page has the kernel weights, the certificate with the convergence of the solver, and the
    results of cross-validation; given samples, also scores of the predictions, the importance of
    the views, the alignment of the kernels, and checks of the data. Parameters and versions at
    the end make it reproducible. The page lists what was not computed, and why. It needs neither
    a network nor scripts.

    Parameters
    ----------
    estimator : fitted estimator of this package
    X, y : as for ``estimator.fit``, optional
        The training samples, or new ones. Predictions are scored on samples that the model was
        not trained on: the new rows of X or, if X are the training samples, held-out predictions,
        which some estimators keep. Scores on training samples are never shown.
    importance : {"auto", True, False} or ViewImportance, default="auto"
        Whether to compute the importance of the views by :func:`~manykernels.view_importance`, or
        its result. That fits many models; "auto" does it for training samples of up to 300 rows
        and 12 views, and for estimators without a search.
    columns : bool or ColumnImportance, default=False
        Whether to compute the importance of the columns by
        :func:`~manykernels.column_importance`, or its result.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples in all scores. Of a model that was fitted with sample weights, pass
        them together with X and y: then the scores are those of the model, such as
        ``left_out_score_``. Samples of weight zero do not count.
    groups : array-like of shape (n_samples,), optional
        Labels of the groups of samples, such as the patients of several samples each, which are
        not independent in intervals. Those of training samples are known from the fit.
    entry, strata : array-like of shape (n_samples,), optional
        Of a survival model: entries and strata of the samples, as in ``MKCox.fit``. Samples are
        compared within strata.
    new : bool, optional
        Whether X are new samples. By default, rows are compared with those that the model keeps.
    path : str or Path, optional
        File to save the page to.

    Returns
    -------
    report : Report
        ``report.save(path)`` writes the page, ``report.html`` is its source, ``report.data`` its
        contents as a dict.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from manykernels import MKFDACV
    >>> from manykernels import report
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
        _template(), pyplot()  # a missing library is reported before the work is done
    contents = summarize(
        estimator,
        X,
        y,
        importance=importance,
        columns=columns,
        sample_weight=sample_weight,
        groups=groups,
        entry=entry,
        strata=strata,
        new=new,
    )
    page = Report(contents)
    if path is not None:
        page.save(path)
    return page


# -- rendering -------------------------------------------------------------------------------


def _context(data: dict[str, Any]) -> dict[str, Any]:
    """Return the context of the template: the dict, its pictures and sizes of bars."""
    pictures: dict[str, Any] = {}
    proof, choice, judged = (data.get(name) for name in ("proof", "choice", "judged"))
    if proof and "history" in proof:
        tol = proof["certificate"]["tol"] if proof["convex"] else None
        pictures["convergence"] = convergence_picture(proof["history"], tol)
    if choice and "curve" in choice and choice["n_points"] > 1:
        pictures["choice"] = choice_picture(choice["curve"])
    if judged and "calibration" in judged:
        pictures["calibration"] = calibration_picture(judged["calibration"])
    if judged and "targets" in judged:
        pictures["predictions"] = [
            prediction_picture(target, number)
            for number, target in enumerate(judged["targets"][:_DRAWN])
        ]
    if judged and "curves" in judged:
        pictures["curves"] = curves_picture(judged["curves"])
    if judged and isinstance(judged.get("survival"), dict):
        pictures["survival"] = survival_picture(judged["survival"])
    if importance := data.get("importance"):
        pictures["importance"] = importance_picture(importance)
    if columns := data.get("columns"):
        pictures["columns"] = columns_picture(columns)
    shares = data["learnt"]["mean_shares"]
    order = sorted(range(len(shares)), key=lambda j: -shares[j])
    of_views = data["learnt"]["views"]
    return {
        **data,
        "pictures": pictures,
        "sections": [
            {"id": name, "title": title} for name, title in _SECTIONS.items() if name in data
        ],
        "kernel_order": order,
        "kernels_of_views": {
            view["name"]: [j for j in order if of_views[j] == view["name"]]
            for view in sorted(data["learnt"]["view_shares"], key=lambda view: -view["share"])
        },
        # The largest share fills its cell; 1.0 if all shares are zero.
        "most_of_kernels": max(shares) or 1.0,
        "most_of_views": max(view["share"] for view in data["learnt"]["view_shares"]) or 1.0,
        "most_of_groups": max(max(group["shares"]) for group in data["learnt"]["groups"]) or 1.0,
        "listed": _LISTED,
        "most_targets": _DRAWN,
        "target_scores": _names_of_scores(data.get("judged", {})),
    }


def _names_of_scores(judged: dict[str, Any]) -> list[str]:
    """Return the names of the scores of several targets; constant ones have fewer."""
    names = (score["name"] for target in judged.get("targets", []) for score in target["scores"])
    first = list(dict.fromkeys(names))
    return [name for name in first if name == "R²"] + [name for name in first if name != "R²"]


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


def shown(text: object) -> str:
    """Replace characters that HTML cannot contain: control characters and lone surrogates."""
    return "".join(
        "�" if unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t" else letter
        for letter in str(text)
    )


def shortened(text: object) -> str:
    """Omit the middle of a long name; the page has the full name in a tooltip."""
    return tables.shortened(shown(text))


def _sentence(text: object) -> str:
    """Write exponents with minus signs, at which browsers do not break lines."""
    return re.sub(r"(?<=\de)-(?=\d)", "−", shown(text))


def _number(spec: str) -> Callable[[float | None], str]:
    """Return a filter that formats numbers with minus signs, and None as a dash."""

    def formatted(value: float | None) -> str:
        return "–" if value is None else format(value, spec).replace("-", "−")

    return formatted


def _digits(*values: float) -> str:
    """Return a format with three digits, or three decimals of numbers below one."""
    largest = max(map(abs, values))
    return f".{3 if largest < 1.0 else max(3 - len(str(int(largest))), 0)}f"


def _score(value: float | None) -> str:
    return "–" if value is None else format(value, _digits(value)).replace("-", "−")


def _interval(low: float | None, high: float | None, spec: str = "") -> str:
    if low is None or high is None:
        return ""
    spec = spec or _digits(low, high)
    return f"[{format(low, spec)}, {format(high, spec)}]".replace("-", "−")


_FILTERS: dict[str, Callable[..., str]] = {
    "shown": shown,
    "shortened": shortened,
    "sentence": _sentence,
    "score": _score,
    "signed": _number("+.3f"),
    "weight": _number(".3g"),
    "percent": _number(".1%"),
    "whole_percent": _number(".0%"),
    "general": _number(".6g"),
    "short": _number(".3g"),
    "interval": _interval,
}
