"""The command lines of the benchmarks."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks._tables import measured_with

PAGES = Path(__file__).parents[1] / "docs" / "benchmarks"

Loaded = TypeVar("Loaded")


def command_line(name: str, description: str, sets: list[str]) -> argparse.ArgumentParser:
    """Parser with the options of all benchmarks: quick, sets and write."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--quick", action="store_true", help="a part of it, to see it work")
    add_names(parser, "sets", sets)
    parser.add_argument(
        "--write", action="store_true", help=f"write docs/benchmarks/{name}.json and .md"
    )
    return parser


def add_names(parser: argparse.ArgumentParser, option: str, names: Iterable[str]) -> None:
    """Add an option that chooses some of several names, separated by commas or spaces."""
    names = list(names)
    parser.add_argument(
        f"--{option}",
        nargs="+",
        action=_Names,
        choosable=names,
        default=names,
        help=f"of {','.join(names)}, separated by commas or spaces (default: all)",
    )


def chosen_sets(
    parser: argparse.ArgumentParser, options: argparse.Namespace, quick: list[str]
) -> list[str]:
    """Sets that were chosen; those of `quick` in the quick form, if none were."""
    none_chosen = options.sets is parser.get_default("sets")
    return quick if options.quick and none_chosen else options.sets


class _Names(argparse.Action):
    def __init__(self, *arguments: Any, choosable: list[str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.choosable = choosable

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        names = [name for value in values for name in value.split(",")]
        if unknown := [name for name in names if name not in self.choosable]:
            parser.error(f"unknown: {', '.join(unknown)}")
        setattr(namespace, self.dest, names)


def load(name: str, loader: Callable[[], Loaded]) -> Loaded | None:
    """The data of a set, or None and a message if they are not there."""
    try:
        return loader()
    except SystemExit as error:  # the loaders end a program whose data are not there
        print(f"{error}\nSkipped: {name}.\n", file=sys.stderr)
        return None


def write_page(name: str, text: str) -> None:
    """Write a page of the documentation."""
    PAGES.mkdir(parents=True, exist_ok=True)
    path = PAGES / f"{name}.md"
    path.write_text(text, encoding="utf-8")
    print(f"Written: {path}")


Results = dict[str, dict[str, Any]]


def read_results(name: str) -> Results:
    """What a benchmark has measured, by part; empty if it has written nothing."""
    path = PAGES / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def report(
    name: str,
    measured: Results | Iterable[tuple[str, dict[str, Any]]],
    page: Callable[[Results], str],
    write: bool,
    order: Iterable[str] = (),
) -> Results:
    """Print the page of what was measured, by part; write it with its values if `write`.

    An iterator of parts and their values is written part by part, as they are measured, so that
    a benchmark that takes long can be interrupted. Parts of other runs stay, each with the
    versions it was measured with. `order` is the order of the parts, where it matters. What was
    measured is returned.
    """
    if not isinstance(measured, dict):
        results = {}
        for part, values in measured:
            results[part] = values
            if write:
                write_results(name, {part: values}, page, order)
        write, measured = False, results
    if measured:
        print(page(with_environment(measured)))
    if measured and write:
        write_results(name, measured, page, order)
    return measured


def with_environment(measured: Results) -> Results:
    """Measured values as a page reads them: plain, and with versions and machine."""
    return {
        part: {"environment": measured_with(), **_plain(values)}
        for part, values in measured.items()
    }


def write_results(
    name: str, measured: Results, page: Callable[[Results], str], order: Iterable[str] = ()
) -> None:
    """Write what was measured, by part, and the page that is made of it; see `report`."""
    results = {**read_results(name), **with_environment(measured)}
    places = {part: place for place, part in enumerate(order)}
    results = dict(sorted(results.items(), key=lambda item: places.get(item[0], len(places))))
    path = PAGES / f"{name}.json"
    PAGES.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, ensure_ascii=False, indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
    print(f"Written: {path}")
    write_page(name, page(read_results(name)))


def _plain(value: Any) -> Any:
    """The value made of dictionaries, lists, text and numbers of six digits."""
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return float(f"{value:.6g}") if isinstance(value, float) else value
