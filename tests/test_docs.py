"""Pages of the documentation: code runs and prints what they say, links lead somewhere."""

import doctest
import inspect
import re
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from pkgutil import iter_modules

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
    for fence, after in zip_longest(found, found[1:]):
        if fence[1] == "python":
            follows = (
                after and after[1] == "text" and not text[fence.end() : after.start()].strip()
            )
            blocks.append((fence[2], after[2] if follows else None))
    return blocks


# -- code ------------------------------------------------------------------------------------


# Pages whose code takes more than a second or two.
SLOW = {"how_to/compare_methods", "how_to/dask", "how_to/million_rows", "how_to/multi_omics"}
SLOW |= {"tutorials/reading_a_model", "tutorials/several_tables", "how_to/choose"}
SLOW |= {"tutorials/survival", "how_to/survival"}
SLOW |= {"explanation/pitfalls", "how_to/images", "how_to/ready_made_kernels"}
# Pages that need packages of their own: `make test-omics`.
OMICS = {"tutorials/mudata"}


def with_code():
    """Pages with code, for the fast tests or the slow ones."""
    # The page of the command line is run by tests/cli, with its commands.
    for page in [one for one in PAGES if code_of(one) and name_of(one) != "command_line"]:
        marks = [pytest.mark.slow] if name_of(page) in SLOW else []
        if name_of(page) in OMICS:
            # AnnData and MuData use what pandas is about to remove.
            ignored = pytest.mark.filterwarnings("ignore::DeprecationWarning")
            marks += [pytest.mark.omics, ignored]
        yield pytest.param(page, marks=marks, id=name_of(page))


@pytest.mark.parametrize("page", list(with_code()))
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


def rooms():
    """Modules of the package with public names."""
    found = [manykernels]
    for room in iter_modules(manykernels.__path__):
        module = import_module(f"manykernels.{room.name}")
        if not room.name.startswith("_") and hasattr(module, "__all__"):
            found.append(module)
    return found


def listed_names():
    """What the pages of the reference list: places, and what is found there."""
    block = re.compile(
        r"currentmodule:: (\S+)\n\n\.\. autosummary::\n(.*?)^```", re.DOTALL | re.MULTILINE
    )
    for page in (DOCS / "reference").glob("*.md"):
        for home, names in block.findall(text_of(page)):
            for name in re.findall(r"^   (\w+)$", names, flags=re.MULTILINE):
                yield f"{home}.{name}", getattr(import_module(home), name)


def test_every_public_name_is_in_the_reference_once():
    listed = list(listed_names())
    places = [place for place, _ in listed]
    assert len(set(places)) == len(places)
    known = {id(value) for _, value in listed}
    absent = {
        f"{room.__name__}.{name}"
        for room in rooms()
        for name in room.__all__
        if id(getattr(room, name)) not in known
    }
    # A version, a type that annotations name, and what the installed command calls.
    known = {"manykernels.__version__", "manykernels.cli.main"}
    assert absent == known, "to be listed"


# What users do not make: results and an exception.
MADE_FOR_USERS = {
    "ColumnImportance",
    "Comparison",
    "KaplanMeier",
    "ModelFileError",
    "ViewImportance",
}


def documented(docstring):
    """Types of the parameters in a docstring by name; "" where it refers to another one."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?:^\w[\w ]*\n-+$|\Z)", docstring, re.M | re.S)
    entries = re.findall(
        r"^(\*{0,2}\w[\w, *]*?)(?: : (.*))?$", section[1] if section else "", re.M
    )
    return {name.strip("* "): kind for names, kind in entries for name in names.split(",")}


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(value, id=place)
        for place, value in listed_names()
        if callable(value) and value.__name__ not in MADE_FOR_USERS
    ],
)
def test_parameters_are_documented_with_their_defaults(value):
    docstring = inspect.getdoc(value)
    known = documented(docstring)
    if re.search(r"(?i)parameters\s+are\s+those\s+of\s+:class:`", docstring):
        for base in value.__mro__:
            known = {**documented(inspect.getdoc(base) or ""), **known}
    parameters = inspect.signature(value).parameters.values()
    assert [one.name for one in parameters if one.name not in known] == []
    given = [one.name for one in parameters if one.default is not inspect.Parameter.empty]
    silent = [name for name in given if not re.search("default|optional|^$", known[name])]
    assert silent == []


def test_the_flowchart_leads_to_pages_of_the_reference():
    links = re.findall(r'href="([^"]+)"', (DOCS / "how_to" / "flowchart.svg").read_text())
    pages = {f"../reference/generated/{place}.html" for place, _ in listed_names()}
    assert links
    assert set(links) <= pages


# -- figures ---------------------------------------------------------------------------------


def rows_of(text):
    """Cells of all rows of tables."""
    lines = re.findall(r"^\|(.*)\|$", text, flags=re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def test_learnt_weights_and_the_plain_sum_are_those_that_were_measured():
    measured = {}
    for section in text_of(DOCS / "benchmarks" / "defaults.md").split("\n## ")[1:]:
        scores = {row[0]: row[1].split(" ±")[0] for row in rows_of(section)}
        if "plain sum" not in scores:  # the section of log losses
            continue
        learnt = scores.get("MKFDACV", scores.get("MKRidgeCV"))
        measured[section.splitlines()[0].split(",")[0]] = (learnt, scores["plain sum"])
    page = rows_of(text_of(DOCS / "explanation" / "when_weights_help.md"))
    told = {row[0]: row[2:] for row in page if row[0] in measured}
    assert told.keys() == measured.keys()
    for data, (learnt, plain, difference) in told.items():
        assert (learnt, plain) == measured[data]
        assert float(difference.replace("−", "-")) == pytest.approx(float(learnt) - float(plain))
