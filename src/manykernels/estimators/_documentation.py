"""Documentation of inherited parameters and attributes, written once, where they are declared.

The docstring of a class lists its own parameters and attributes. Those that it inherits are
added from the docstrings of its bases, so that ``help`` and the documentation show all of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

# The order of numpydoc.
_ORDER = ["Parameters", "Returns", "Attributes", "Notes", "References", "Examples"]
_HEADING = re.compile(r"^(\w[\w ]*)\n-+\n", re.MULTILINE)


def inherited(
    own: str | None, others: Iterable[str | None], order: dict[str, list[str]]
) -> str | None:
    """A numpydoc docstring with the entries that `others` have in addition.

    Of entries with the same name the first one counts. `order` has the sections that are
    completed, and for each the names that come first in it.
    """
    if own is None:
        return None
    sections = _sections(own)
    known = [_sections(other) for other in others if other]
    completed = {}
    for title, first in order.items():
        entries: dict[str, str] = {}
        for found in (sections, *known):
            for name, entry in _entries(found.pop(title, "")).items():
                entries.setdefault(name, entry)
        listed = [name for name in first if name in entries]
        listed += [name for name in entries if name not in listed]
        if listed:
            completed[title] = "".join(entries[name] for name in listed) + "\n"
    text = sections.pop("")
    found = {**completed, **sections}
    for title in sorted(found, key=_ORDER.index):
        text = f"{text}{title}\n{'-' * len(title)}\n{found[title]}"
    return text.rstrip() + "\n"


def _sections(docstring: str) -> dict[str, str]:
    """Bodies of the sections by their titles; what stands before the first has no title."""
    parts = _HEADING.split(inspect.cleandoc(docstring) + "\n")
    titles = ["", *parts[1::2]]
    return {
        title: body.strip("\n") + "\n\n" for title, body in zip(titles, parts[::2], strict=True)
    }


def _entries(section: str) -> dict[str, str]:
    """Entries by name: each is a line that is not indented, and the indented ones after it."""
    entries: dict[str, str] = {}
    name = ""
    for line in section.strip("\n").splitlines():
        if line and not line[0].isspace():
            name = line.split(" : ")[0].strip()
            entries[name] = ""
        if name:
            entries[name] += f"{line}\n"
    return entries
