"""The page: complete, escaped, readable by machines and in the dark."""

import json
import re
import sys
from importlib import resources
from itertools import product
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest

from manykernels import MKFDA, MKRidge, report
from manykernels.display.base import COLORS, GREY
from manykernels.kernels import Linear
from manykernels.reporting.html import (
    DiagonalDisplay,
    importance_picture,
    picture,
    shortened,
    shown,
)
from tests.reporting.pages import HOSTILE, Page, reported, views_and_classes

KINDS = ["plain", "search", "values", "survival", "hostile"]
every_page = pytest.mark.parametrize("kind", KINDS)
TEMPLATES = resources.files("manykernels.reporting") / "templates"
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


def test_kernels_are_folded_by_view():
    views, y = views_and_classes()
    model = MKFDA(p=2).fit(views, y)
    page = report(model, views, y, importance=False).html
    n_kernels = len(model.kernel_names_) // len(views)
    for view in views:
        start = page.index(f"{view}</bdi>: {n_kernels} kernels</summary>")
        table = page[start : page.index("</details>", start)]
        rows = [name for name in model.kernel_names_ if f"{name}</bdi>" in table]
        assert rows == [name for name in model.kernel_names_ if name.startswith(f"{view}:")]


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
    from manykernels.reporting.html import _template

    _template.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    tables, y = views_and_classes()
    made = report(MKFDA().fit(tables, y))
    with pytest.raises(ImportError, match=r"manykernels\[report\]"):
        _ = made.html
    assert made.data["estimator"] == "MKFDA"

    def not_reached(*given, **options):
        raise AssertionError("the work is done though nothing can be written")

    monkeypatch.setattr("manykernels.reporting.html.summarize", not_reached)
    with pytest.raises(ImportError, match=r"manykernels\[report\]"):
        report(made, path="page.html")


# -- pictures --------------------------------------------------------------------------------


def texts(svg):
    """Texts of an SVG, as a browser shows them."""
    root = ElementTree.fromstring(svg)
    return ["".join(one.itertext()) for one in root.iter() if one.tag.endswith("text")]


@every_page
def test_pictures_use_the_colours_of_the_page(kind):
    pictures = re.findall("<figure>.*?</figure>", reported(kind).html, re.DOTALL)
    assert pictures
    for svg in pictures:
        assert "var(--c0)" in svg
        assert not any(color in svg for color in (*COLORS, GREY))
        assert "<metadata" not in svg
        assert "<style" not in svg


@pytest.mark.parametrize("kind", ["plain", "search", "values", "survival"])
def test_parts_of_pictures_refer_to_parts_of_the_same_picture(kind):
    for figure in re.findall("<figure>.*?</figure>", reported(kind).html, re.DOTALL):
        ids = set(re.findall(r' id="([^"]+)"', figure))
        assert set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', figure)) <= {
            *((one, "") for one in ids),
            *(("", one) for one in ids),
        }


def test_pictures_show_the_data():
    html = reported("search").html
    (choice,) = re.findall(r'<svg [^>]*"choice-title.*?</svg>', html, re.DOTALL)
    assert {"p = 1", "p = 2", "p = ∞", "0.01", "0.1", "1", "λ"} <= set(texts(choice))
    (proof,) = re.findall(r'<svg [^>]*"convergence-title.*?</svg>', html, re.DOTALL)
    assert "inner solves" in texts(proof)
    assert any(text.startswith("tol = 10⁻") for text in texts(proof))
    (judged,) = re.findall(r'<svg [^>]*"calibration-title.*?</svg>', html, re.DOTALL)
    assert {"predicted probability", "observed share"} <= set(texts(judged))


def test_points_beside_a_diagonal():
    display = DiagonalDisplay([0.0, 2.0], [1.0, None], "true", "predicted").plot()
    points, diagonal = display.ax_.lines
    np.testing.assert_array_equal(points.get_xydata(), [[0.0, 1.0], [2.0, np.nan]])
    assert points.get_linestyle() == "None"
    np.testing.assert_array_equal(diagonal.get_xydata(), [[0.0, 0.0], [2.0, 2.0]])
    intervals = [[0.0, 2.0], [1.0, 3.0]]
    display = DiagonalDisplay([0.0, 2.0], [1.0, 2.0], "", "", intervals).plot()
    assert display.ax_.lines[0].get_linestyle() == "-"
    (bars,) = display.ax_.collections
    np.testing.assert_array_equal(bars.get_segments()[1], [[2.0, 1.0], [2.0, 3.0]])
    plt.close("all")


def test_titles_of_pictures_are_escaped():
    display = DiagonalDisplay([0.0], [1.0], "x", "y")
    svg = picture(display, "one", HOSTILE[0], HOSTILE[1])["svg"]
    found = Page(svg)
    assert found.of("script") == found.of("img") == []
    assert HOSTILE[0] in found.words


def test_names_in_pictures_are_escaped_and_drawn_without_a_warning():
    """Also names with letters that the fonts of matplotlib lack, and values that are not known."""
    data = reported("plain").data["importance"]
    rows = [{**data["rows"][0], "view": name} for name in HOSTILE]
    unknown = dict.fromkeys(("fall", "fall_low", "fall_high"))
    hostile = {**data, "rows": [*rows, {**rows[0], **unknown}], "scoring": HOSTILE[4]}
    svg = importance_picture(hostile)["svg"]
    found = Page(svg)
    assert found.of("script") == found.of("img") == []
    assert found.unbalanced == []
    assert any(HOSTILE[0] in text for text in texts(svg))
    assert any("half �, bell �" in text for text in texts(svg))


def test_many_targets_are_a_table_and_a_few_pictures():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    Y = X @ rng.standard_normal((3, 9)) + 0.1 * rng.standard_normal((40, 9))
    Y[:, 0] = 1.0  # a constant target has no R²
    model = MKRidge(Linear(), reg=0.1).fit(X, Y)
    made = report(model, X, Y, importance=False)
    page = made.html
    assert page.count("Predicted and true values, target") == 2 * 6
    rows = re.findall(r"<tr><th scope=\"row\">target (\d)</th>(.*?)</tr>", page)
    assert [number for number, _ in rows[-9:]] == list("012345678")
    scores = {row["name"]: row for row in made.data["judged"]["targets"]}
    shown = [re.findall("<td>(.*?)</td>", cells) for _, cells in rows[-9:]]
    assert [cells[0] for cells in shown] == [
        "",
        *(f"{scores[f'target {k}']['scores'][0]['value']:.3f}" for k in range(1, 9)),
    ]


@pytest.mark.parametrize(("n_classes", "opened"), [(12, 1), (13, 0)])
def test_long_lists_of_classes_are_folded(n_classes, opened):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), 4)
    X = y[:, None] + 0.1 * rng.normal(size=(len(y), 2))
    model = MKFDA([Linear()]).fit(X, y)
    text = report(model, X, y).html
    summary = f"<summary>Samples of the {n_classes} classes</summary>"
    before, _, _ = text.partition(summary)
    assert summary in text
    assert before.rstrip().endswith("<details open>" if opened else "<details>")
