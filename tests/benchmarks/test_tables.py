"""What the benchmarks have in common."""

import pytest

from benchmarks import _command, _tables


def test_tables_can_be_read_as_they_are():
    table = _tables.markdown(["a", "name"], [["long", "1"], ["b", "10"]])
    assert table.splitlines() == [
        "| a    | name |",
        "|------|-----:|",
        "| long |    1 |",
        "| b    |   10 |",
    ]


def test_rows_of_another_length_are_refused():
    with pytest.raises(ValueError, match="zip"):
        _tables.markdown(["a", "b"], [["1"]])


@pytest.mark.parametrize("arguments", [["x,y"], ["x", "y"]])
def test_sets_are_separated_by_commas_or_spaces(arguments):
    parser = _command.command_line("some", "", ["x", "y", "z"])
    assert parser.parse_args(["--sets", *arguments]).sets == ["x", "y"]
    assert parser.parse_args([]).sets == ["x", "y", "z"]


def test_pages_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_command, "PAGES", tmp_path / "pages")
    _command.write_page("some", "λ\n")
    assert (tmp_path / "pages" / "some.md").read_text(encoding="utf-8") == "λ\n"
    assert "some.md" in capsys.readouterr().out


def test_sections_of_other_runs_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    _command.write_sections("some", "# old", {"a": "1\n\n### part\n\n2", "b": "3"})
    _command.write_sections("some", "# new", {"b": "4", "c": "5"})
    text = (tmp_path / "some.md").read_text(encoding="utf-8")
    assert text == "# new\n\n## a\n\n1\n\n### part\n\n2\n\n## b\n\n4\n\n## c\n\n5\n"
