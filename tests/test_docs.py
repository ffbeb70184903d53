"""The pages of the documentation: their code runs and prints what they say, links lead somewhere."""

import doctest
import re
from pathlib import Path

import pytest

import manykernels

DOCS = Path(__file__).parents[1] / "docs"
GENERATED = {"_build", "auto_examples", "generated"}
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if not GENERATED & set(page.parts)]
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def name_of(page):
    return str(page.relative_to(DOCS).with_suffix(""))


def text_of(page):
    return page.read_text(encoding="utf-8")


def code_of(page):
    """Every block of Python, and what it prints, if a block of text follows at once."""
    text, blocks = text_of(page), []
    found = list(FENCE.finditer(text))
    for fence, after in zip(found, [*found[1:], None], strict=True):
        if fence[1] == "python":
            follows = after and after[1] == "text" and not text[fence.end() : after.start()].strip()
            blocks.append((fence[2], after[2] if follows else None))
    return blocks


# -- code ------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", filter(code_of, PAGES), ids=name_of)
def test_code_runs_and_prints_what_the_page_says(page, capsys, monkeypatch, tmp_path):
    """The blocks of a page run in their order, as a reader would paste them."""
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    for number, (code, printed) in enumerate(code_of(page), start=1):
        exec(compile(code, f"{page.name}, block {number}", "exec"), namespace)
        out = capsys.readouterr().out
        if printed is not None:
            assert doctest.OutputChecker().check_output(printed, out, flags), f"{number}: {out}"


def test_the_guides_have_code():
    for folder in ("tutorials", "how_to"):
        assert any(code_of(page) for page in PAGES if page.parent.name == folder)


# -- links -----------------------------------------------------------------------------------


def anchors(page):
    """Of the headings of a page, as they are made from their words."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text_of(page)), flags=re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    prose = re.sub(r"`[^`\n]+`", "", FENCE.sub("", text_of(page)))
    for link in re.findall(r"\]\((?!https?://)([^)\s]+)\)", prose):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_pages_speak_of_files_of_the_repository_only():
    for page in PAGES:
        assert not re.search(r"/(tmp|home|work)/", text_of(page)), page


# -- reference -------------------------------------------------------------------------------


def listed_names():
    """What the pages of the reference list, as objects."""
    for page in (DOCS / "reference").glob("*.md"):
        for module, names in re.findall(
            r"currentmodule:: (\S+)\n\n\.\. autosummary::\n(.*?)^```", text_of(page), flags=re.S | re.M
        ):
            home = manykernels
            for part in module.split(".")[1:]:
                home = getattr(home, part)
            for name in re.findall(r"^   (\w+)$", names, flags=re.MULTILINE):
                yield f"{module}.{name}", getattr(home, name)


def test_every_public_name_is_in_the_reference_once():
    listed = list(listed_names())
    places = [place for place, _ in listed]
    assert len(set(places)) == len(places)
    known = {id(value) for _, value in listed}
    rooms = {"": manykernels, **{name: getattr(manykernels, name) for name in manykernels._FOLDERS}}
    rooms["kernels"] = manykernels.kernels
    absent = {
        f"{room}.{name}"
        for room, module in rooms.items()
        for name in module.__all__
        if id(getattr(module, name)) not in known
    }
    # A version, and a type that annotations name.
    assert absent == {".__version__", "domains.Array"}, "to be listed in docs/reference"
