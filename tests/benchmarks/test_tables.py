"""What the benchmarks have in common."""

import numpy as np
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


# -- pages made of measured values ----------------------------------------------------------------


def test_measured_values_are_plain_and_parts_of_other_runs_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(_command, "PAGES", tmp_path)

    def page(results):
        return ", ".join(f"{name} {part['value']:g}" for name, part in results.items()) + "\n"

    first = {"b": {"value": np.float64(1 / 3), "draws": np.arange(2)}}
    _command.write_results("some", first, page, ["a", "b"])
    _command.write_results("some", {"a": {"value": 2, "chosen": (True, None)}}, page, ["a", "b"])
    found = _command.read_results("some")
    assert list(found) == ["a", "b"]
    assert found["b"]["value"] == 0.333333
    assert found["b"]["draws"] == [0, 1]
    assert found["a"]["chosen"] == [True, None]
    assert found["a"]["environment"] == _tables.measured_with()
    assert (tmp_path / "some.md").read_text(encoding="utf-8") == "a 2, b 0.333333\n"


def test_parts_are_written_when_they_are_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_command, "PAGES", tmp_path)

    def measured():
        yield "a", {"value": 1}
        assert list(_command.read_results("some")) == ["a"]
        yield "b", {"value": 2}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _command.report("some", measured(), lambda results: f"{list(results)}", write=True)
    assert (tmp_path / "some.md").read_text() == "['a', 'b']"
    assert _command.report("none", iter([]), str, write=True) == {}
    assert _command.read_results("none") == {}
    capsys.readouterr()
    parts = iter([("c", {"value": 3})])
    assert list(_command.report("other", parts, lambda results: f"{list(results)}", False)) == [
        "c"
    ]
    assert capsys.readouterr().out == "['c']\n"


def test_environments_of_parts_are_told_once_if_they_are_the_same():
    one = {"environment": {"versions": {"numpy": "2"}, "machine": "a machine"}}
    two = {"environment": {"versions": {"numpy": "3"}, "machine": "a machine"}}
    assert _tables.environments({"a": one, "b": one}) == "numpy 2; a machine."
    assert _tables.environments({"a": one, "b": two, "c": one}) == (
        "- a, c: numpy 2; a machine.\n- b: numpy 3; a machine."
    )


def paper_row(ours, **changed):
    return _tables.PaperRow("A 2000", "Table 1", "data", "method", 10.0, ours, 0.5, **changed)


@pytest.mark.parametrize(
    ("ours", "lower_is_better", "verdict"),
    [
        (11.0, False, "within two standard errors"),
        (9.0, False, "within two standard errors"),
        (11.1, False, "above, unexplained"),
        (8.9, False, "below, unexplained"),
        (11.1, True, "below, unexplained"),
        (8.9, True, "above, unexplained"),
    ],
)
def test_verdicts_beside_a_paper(ours, lower_is_better, verdict):
    assert paper_row(ours, lower_is_better=lower_is_better).verdict == verdict


def test_reasons_are_told_only_where_there_is_a_difference():
    assert paper_row(12.0, reason="more rows").verdict == "above: more rows"
    assert paper_row(10.0, reason="more rows").verdict == "within two standard errors"


def test_standard_errors_of_differences():
    assert _tables.standard_error((3.0, 9), (4.0, 4)) == pytest.approx(5**0.5)


def test_rows_beside_a_paper_are_counted():
    rows = [paper_row(10.0), paper_row(12.0, reason="a"), paper_row(12.0), paper_row(1.0)]
    assert _tables.counted(rows) == (
        "4 rows: 1 within two standard errors, 2 above (1 unexplained), 1 below (1 unexplained)"
    )
    table = _tables.paper_table([paper_row(12.0, reason="a", same_data=False)])
    assert "data (stand-in)" in table
    assert "above: a" in table


def test_the_quick_form_takes_few_sets_unless_others_are_named():
    parser = _command.command_line("some", "Some.", ["a", "b", "c"])

    def chosen(*arguments):
        return _command.chosen_sets(parser, parser.parse_args([*arguments]), ["b"])

    assert chosen() == chosen("--sets", "a,b", "c", "--quick") == ["a", "b", "c"]
    assert chosen("--quick") == ["b"]
    assert chosen("--quick", "--sets", "a") == ["a"]
