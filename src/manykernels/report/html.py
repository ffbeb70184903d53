"""The report as one page of HTML: the plain dict, drawn by a template that escapes everything."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from html import escape
from pathlib import Path
from typing import Any

from .. import _tables as tables
from .._files import replacing
from . import charts
from .summary import summarize

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
        pictures["convergence"] = charts.convergence_chart(proof["history"], tol)
    if choice and "curve" in choice and choice["n_points"] > 1:
        pictures["choice"] = charts.choice_chart(choice["curve"])
    if judged and "calibration" in judged:
        pictures["calibration"] = charts.calibration_chart(judged["calibration"])
    if judged and "targets" in judged:
        pictures["predictions"] = [charts.prediction_chart(one) for one in judged["targets"]]
    if importance := data.get("importance"):
        rows = importance["rows"]
        pictures["falls"] = charts.interval_track(rows, "fall", 0.0)
        pictures["alone"] = charts.interval_track(rows, "alone", importance["score"])
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
