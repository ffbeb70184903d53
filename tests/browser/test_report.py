"""Reports in a browser: nothing on its console, readable in the dark, on a phone and on paper."""

import html
import json
import re

import pytest

from tests.browser.chromium import DARK, LIGHT, probed, run
from tests.reporting.pages import Page, reported

pytestmark = pytest.mark.browser
KINDS = ["plain", "search", "values", "survival", "hostile"]
every_page = pytest.mark.parametrize("kind", KINDS)


def measures(folder, page, *options, width=1000):
    document, console = run(folder, probed(page, width), "--dump-dom", *options)
    assert console == []
    (found,) = re.findall(r'data-probe="([^"]*)"', document)
    return json.loads(html.unescape(found))


@every_page
def test_a_page_is_shown_whole_and_without_complaints(kind, tmp_path):
    document, console = run(tmp_path, reported(kind).html, "--dump-dom", "--window-size=1000,900")
    assert console == []
    assert Page(document).sections == Page(reported(kind).html).sections
    assert Page(document).of("script") == []


def test_complaints_would_be_noticed(tmp_path):
    """The page's own policy refuses a script, which the console tells."""
    page = reported("plain").html.replace("</body>", "<script>alert(1)</script></body>")
    _, console = run(tmp_path, page, "--dump-dom")
    assert any("Content Security Policy" in line for line in console)


@every_page
@pytest.mark.parametrize("width", [320, 1400])
def test_nothing_is_wider_than_the_window(kind, width, tmp_path):
    found = measures(tmp_path, reported(kind).html, width=width)
    assert found["width"] == width
    assert found["scrollWidth"] <= width
    assert found["wider"] == []
    assert found["small"] == 0
    assert min(found["heights"]) > 50
    assert all(height > 100 for height in found["pictures"])


def test_light_and_dark(tmp_path):
    light = measures(tmp_path, reported("plain").html, LIGHT)
    dark = measures(tmp_path, reported("plain").html, DARK)
    assert light["body"] == ["rgb(28, 33, 38)", "rgb(253, 253, 252)"]
    assert dark["body"] == ["rgb(232, 236, 239)", "rgb(20, 24, 27)"]
    assert light["answer"] != dark["answer"]


@every_page
def test_it_prints(kind, tmp_path):
    file = tmp_path / "page.pdf"
    _, console = run(tmp_path, reported(kind).html, f"--print-to-pdf={file}", DARK)
    assert console == []
    contents = file.read_bytes()
    assert contents.startswith(b"%PDF")
    n_pages = len(re.findall(rb"/Type\s*/Page\b", contents))
    assert 2 <= n_pages <= 9


def test_in_the_frame_of_a_notebook(tmp_path):
    page = f"<!DOCTYPE html><title>notebook</title>{reported('hostile')._repr_html_()}"
    document, console = run(tmp_path, page, "--dump-dom")
    assert console == []
    assert len(Page(document).of("iframe")) == 1
