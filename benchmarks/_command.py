"""The command lines of the benchmarks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

PAGES = Path(__file__).parents[1] / "docs" / "benchmarks"

Loaded = TypeVar("Loaded")


def command_line(name: str, description: str, sets: list[str]) -> argparse.ArgumentParser:
    """Parser with the options of all benchmarks: quick, sets and write."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--quick", action="store_true", help="a part of it, to see it work")
    parser.add_argument(
        "--sets",
        nargs="+",
        action=_Names,
        choosable=sets,
        default=sets,
        help=f"of {','.join(sets)}, separated by commas or spaces (default: all)",
    )
    parser.add_argument("--write", action="store_true", help=f"write docs/benchmarks/{name}.md")
    return parser


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


def write_sections(name: str, head: str, sections: dict[str, str]) -> None:
    """Write a page whose sections take long, in parts: those of other runs stay as they are."""
    page = PAGES / f"{name}.md"
    found = page.read_text(encoding="utf-8").split("\n## ")[1:] if page.exists() else []
    before = dict(section.rstrip().split("\n\n", 1) for section in found)
    parts = [head, *(f"## {title}\n\n{text}" for title, text in {**before, **sections}.items())]
    write_page(name, "\n\n".join(parts) + "\n")
