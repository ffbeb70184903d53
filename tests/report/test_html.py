"""The page: complete, escaped, readable by machines and in the dark."""

import json
import re
import sys
from importlib import resources
from itertools import product

import numpy as np
import pytest

from manykernels import MKFDA
from manykernels.report import report
from manykernels.report.html import Axis, interval_track, shortened, shown
from tests.report.pages import HOSTILE, Page, reported, views_and_classes

KINDS = ["plain", "search", "values", "hostile"]
every_page = pytest.mark.parametrize("kind", KINDS)
TEMPLATES = resources.files("manykernels.report") / "templates"
CSS = (TEMPLATES / "report.css").read_text()


def page(kind):
    return Page(reported(kind).html)


# -- structure -------------------------------------------------------------------------------


@every_page
def test_pages_are_well_formed_and_stand_alone(kind):
    found = page(kind)
    assert found.unbalanced == []
    assert found.of("html") == [{"lang": "en"}]
    assert [found.of(tag) for tag in ("script", "link", "iframe", "img", "form")] == [[]] * 5
    for _, attributes in found.elements:
        assert not any(name.startswith("on") for name in attributes)
        assert not {"src", "srcset", "action", "xlink:href"} & attributes.keys()
    assert all(one["href"].startswith("#") for one in found.of("a"))
    assert not re.search(r"url\(|@import|https?:", CSS)
    policy = found.of("meta")[2]["content"]
    assert "default-src 'none'" in policy


@every_page
def test_links_lead_to_sections_and_headings_name_them(kind):
    found = page(kind)
    ids = [one["id"] for _, one in found.elements if "id" in one]
    assert len(ids) == len(set(ids))
    assert [one["href"][1:] for one in found.of("a")] == found.sections
    for section in found.of("section"):
        assert section["aria-labelledby"] in ids
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert max(np.diff(levels)) <= 1


@every_page
def test_tables_have_headers_and_pictures_have_words(kind):
    found = page(kind)
    assert found.of("th")
    assert all(one.get("scope") in ("col", "row") for one in found.of("th"))
    for svg in found.of("svg"):
        assert svg.get("aria-hidden") == "true" or svg["role"] == "img"
    n_pictures = sum(svg.get("role") == "img" for svg in found.of("svg"))
    assert len(found.of("title")) == n_pictures + 1
    assert len(found.of("desc")) == n_pictures
    for region in (one for one in found.of("div") if one.get("class") == "scroll"):
        assert region["tabindex"] == "0"
        assert region["aria-label"]


def test_sections_are_the_parts_of_the_data():
    assert page("plain").sections == [
        *("learnt", "importance", "judged", "proof", "alignment", "data", "reproduce"),
    ]
    assert "choice" in page("search").sections
    assert page("values").sections == [
        "learnt",
        "judged",
        "proof",
        "alignment",
        "data",
        "reproduce",
    ]
    tables, y = views_and_classes()
    alone = Page(report(MKFDA().fit(tables, y)).html)
    assert alone.sections == ["learnt", "proof", "data", "reproduce"]


def test_the_page_says_what_the_data_say():
    data, words = reported("plain").data, page("plain").words
    for answer in data["answers"]:
        assert " ".join(answer["answer"].split()) in words
    row = data["importance"]["rows"][0]
    assert f"+{row['fall']:.3f} [+{row['fall_low']:.3f}, +{row['fall_high']:.3f}]" in words
    assert f"{row['weight']:.1%} [{row['weight_low']:.1%}, {row['weight_high']:.1%}]" in words
    for name, version in data["reproduce"]["versions"].items():
        assert f"{name} {version}" in words
    assert "p 2.0 (default)" in words


# -- names are data --------------------------------------------------------------------------


def test_names_are_shown_as_they_are_and_do_nothing():
    found = page("hostile")
    assert "<script>alert(1)</script>" in found.words
    assert "{{ 7 * 7 }}" in found.words
    assert "49" not in found.words
    assert shown(HOSTILE[3]) in found.words
    assert "half �, bell �" in found.words
    titles = [one["title"] for one in found.of("bdi") if "title" in one]
    assert HOSTILE[2] in titles
    assert max(len(text) for text in found.text) < 1000


def test_no_template_escapes_from_escaping():
    texts = [one.read_text() for one in _files(TEMPLATES) if one.name.endswith(".html")]
    assert len(texts) > 8
    assert not any(re.search(r"\|\s*safe\b|autoescape|Markup", text) for text in texts)


def _files(folder):
    for one in folder.iterdir():
        yield from _files(one) if one.is_dir() else [one]


@pytest.mark.parametrize(("text", "expected"), [("a\nb", "a\nb"), ("\0\x1b[1m", "��[1m")])
def test_shown(text, expected):
    assert shown(text) == expected
    assert shortened("x" * 61) == f"{'x' * 30}…{'x' * 30}"


# -- colours ---------------------------------------------------------------------------------


def themes():
    """Colours of the light page, the dark one and the printed one."""
    blocks = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    assert len(blocks) == 3
    found = [dict(re.findall(r"--(\w+): ([^;]+);", block)) for block in blocks]
    return [{**found[0], **one} for one in found]


def rgb(color):
    if not color.startswith("#"):
        return np.array([float(one) for one in color.split()])
    digits = color[1:] if len(color) == 7 else "".join(2 * one for one in color[1:])
    return np.array([int(digits[k : k + 2], 16) for k in (0, 2, 4)], dtype=float)


def contrast(first, second):
    """As WCAG 2.2 defines it."""
    lights = []
    for color in (first, second):
        parts = color / 255.0
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        lights.append(float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05)
    return max(lights) / min(lights)


@pytest.mark.parametrize("theme", themes(), ids=["light", "dark", "print"])
def test_contrast(theme):
    """Text 4.5 to 1, lines of pictures 3 to 1; also on cells that are filled by half."""
    assert contrast(rgb("#000"), rgb("#ffffff")) == pytest.approx(21.0)
    grounds = [rgb(theme["ground"]), rgb(theme["raised"])]
    for name, ground in product(["ink", "quiet", "accent", "good", "bad"], grounds):
        assert contrast(rgb(theme[name]), ground) >= 4.5, name
    for name in ["c0", "c1", "c2", "c3", "c4", "c5", "fill"]:
        assert contrast(rgb(theme[name]), grounds[0]) >= 3.0, name
    filled = 0.5 * rgb(theme["fill"]) + 0.5 * grounds[0]
    assert contrast(rgb(theme["ink"]), filled) >= 4.5


# -- files and notebooks ---------------------------------------------------------------------


def test_saving(tmp_path):
    tables, y = views_and_classes()
    path = tmp_path / "report.html"
    made = report(MKFDA().fit(tables, y), path=path)
    assert path.read_text(encoding="utf-8") == made.html
    path.write_text("before")
    made.save(path)
    assert path.read_text(encoding="utf-8") == made.html
    reported("hostile").save(path)
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(OSError, match="nowhere"):
        made.save(tmp_path / "nowhere" / "report.html")


def test_data_is_json_and_makes_the_same_page():
    made = reported("plain")
    again = type(made)(json.loads(json.dumps(made.data)))
    assert again.html == made.html
    assert repr(made).startswith("Report of MKFDA: What matters? strong; How good is it? Accuracy")


def test_a_notebook_shows_it_in_a_frame():
    (frame,) = Page(reported("hostile")._repr_html_()).of("iframe")
    assert frame["srcdoc"] == reported("hostile").html
    assert frame["sandbox"] == ""
    assert frame["title"] == "Report of MKFDA"


def test_without_jinja_it_says_what_to_install(monkeypatch):
    from manykernels.report.html import _template

    _template.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    tables, y = views_and_classes()
    made = report(MKFDA().fit(tables, y))
    with pytest.raises(ImportError, match=r"manykernels\[report\]"):
        _ = made.html
    assert made.data["estimator"] == "MKFDA"

    def not_reached(*given, **options):
        raise AssertionError("the work is done though nothing can be written")

    monkeypatch.setattr("manykernels.report.html.summarize", not_reached)
    with pytest.raises(ImportError, match=r"manykernels\[report\]"):
        report(made, path="page.html")


# -- pictures --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "logarithmic", "texts"),
    [
        ([0.0, 1.0], False, ["0", "0.5", "1"]),
        ([-3.0, 3.0], False, ["−2", "0", "2"]),
        ([1e-6, 1.0], True, ["10⁻⁶", "10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1", "1"]),
        ([2.0, 2.0], False, None),
        ([np.nan], False, None),
    ],
)
def test_axes_have_round_ticks_within_their_range(values, logarithmic, texts):
    axis = Axis.over(values, logarithmic=logarithmic)
    assert axis.ticks
    assert all(0.0 <= axis.place(at) <= 1.0 for at, _ in axis.ticks)
    assert texts is None or [text for _, text in axis.ticks] == texts
    finite = [value for value in values if np.isfinite(value)]
    assert all(0.0 < axis.place(value) < 1.0 for value in finite)


def test_intervals_share_a_scale():
    rows = [
        {"fall": 0.0, "fall_low": -1.0, "fall_high": 1.0},
        {"fall": None, "fall_low": None, "fall_high": None},
        {"fall": 1.0, "fall_low": 0.0, "fall_high": 2.0},
    ]
    first, unknown, last = interval_track(rows, "fall", 0.0)
    assert unknown is None
    assert first["line"] == first["at"] == last["low"] == last["line"]
    assert 0.0 < first["low"] < first["at"] < first["high"] == last["at"] < last["high"] < 100.0
