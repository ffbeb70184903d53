"""Pages of benchmarks are what their measured values say; nothing is edited by hand."""

import re

import pytest

from benchmarks import _command, pages
from benchmarks._tables import ABOVE, BELOW, WITHIN, PaperRow

NAMES = [name for name, _ in pages.converted()]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_made_of_its_measured_values(name):
    module = dict(pages.converted())[name]
    text = (_command.PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert text == module.page(_command.read_results(name)), (
        f"docs/benchmarks/{name}.md and .json disagree: run python -m benchmarks.pages"
    )


def test_every_page_has_measured_values():
    others = {"index", pages.INDEX}
    assert {path.stem for path in _command.PAGES.glob("*.md")} - others == set(NAMES)


def test_make_bench_runs_every_benchmark_with_a_page():
    text = (_command.PAGES.parents[1] / "Makefile").read_text(encoding="utf-8")
    names = re.findall(r"python -m benchmarks\.(\w+)\n", text.split("\nbench:")[1])
    assert names[-1] == "pages"
    assert sorted(names[:-1]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_has_a_quick_form(name, capsys):
    with pytest.raises(SystemExit) as ended:
        dict(pages.converted())[name].main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert f"python -m benchmarks.{name} " in shown
    assert "--quick" in shown
    assert "--write" in shown


def test_the_indices_of_tables_are_made_of_all_rows():
    text = (_command.PAGES / f"{pages.INDEX}.md").read_text(encoding="utf-8")
    assert text == pages.index(), "run python -m benchmarks.pages"
    text = pages.METHODS.read_text(encoding="utf-8")
    assert text == pages.with_verdicts(text), "run python -m benchmarks.pages"
    with pytest.raises(ValueError, match="has no lines"):
        pages.with_verdicts("")


@pytest.mark.parametrize("name", NAMES)
def test_measured_values_say_what_they_were_measured_with(name):
    for part in _command.read_results(name).values():
        assert part["environment"]["versions"]["manykernels"]
        assert part["environment"]["machine"]


def test_every_row_beside_a_paper_is_there_once():
    rows = [row for _, row in pages.paper_rows()]
    assert all(isinstance(row, PaperRow) for row in rows)
    keys = [(row.paper, row.place, row.data, row.method) for row in rows]
    assert len(keys) == len(set(keys))


def test_the_readme_has_the_totals():
    rows = [row for _, row in pages.paper_rows() if row.same_data]
    numbers = [sum(row.outcome == outcome for row in rows) for outcome in (WITHIN, ABOVE, BELOW)]
    unexplained = sum(row.outcome != WITHIN and not row.reason for row in rows)
    within, above, below = numbers
    text = (_command.PAGES.parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"of {len(rows)} printed figures on the same data {within} are within" in text
    assert f"{above} above and {below} below; for {unexplained} of these no test found why" in text


def test_every_table_and_figure_of_the_papers_has_a_row():
    places = {(row.paper, part) for _, row in pages.paper_rows() for part in _places(row.place)}
    for paper, numbers in pages.CONTENTS.items():
        for kind, number in numbers.items():
            for i in range(1, number + 1):
                place = (paper, f"{kind} {i}")
                assert (place in places) != (place in pages.WITHOUT_FIGURES), place


def _places(place):
    """Table 2 and Table 3 of "Tables 2, 3"."""
    if place.startswith("Tables "):
        return [f"Table {number}" for number in place.removeprefix("Tables ").split(", ")]
    return [place]
