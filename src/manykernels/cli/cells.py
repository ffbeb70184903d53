"""Cells of tables that kernels cannot use, reported with file, view, column, row and value."""

import re
import shlex
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..kernels.columns import NoCategoriesError, disguise, is_plain_number, refuse_no_categories
from ..kernels.tables import LARGEST
from .console import DataError, listed, note
from .files import Contents

# What to do in the file about texts that are numbers or dates.
_WAYS_OUT = (
    ("percentages", "remove the percent signs in the file"),
    ("commas between", "remove these commas in the file"),
    ("spaces between", "remove these spaces in the file"),
    ("apostrophes between", "remove these apostrophes in the file"),
    ("with the unit", "remove the unit in the file"),
    (
        "decimal comma",
        "write decimal points in the file, or separate its columns by semicolons, with which "
        "decimal commas are read",
    ),
    (
        "limits",
        "write numbers in the file, or leave these cells empty and pass --impute",
    ),
    ("dates", "write numbers in the file, such as days since a date"),
)


def check_cells(
    frame: pd.DataFrame, contents: Contents, view: str, *, categories: bool = False
) -> None:
    """Raise if a cell is infinite or too large, or if texts should be numbers.

    With `categories`, columns of text will be compared as categories, and texts that are no
    categories are refused.
    """
    if categories:
        for name in _texts_of(frame):
            _check_texts(frame[name], contents, view, list(frame.columns))
    numbers = frame.select_dtypes("number")
    values = numbers.to_numpy(dtype=float, na_value=np.nan)
    large = np.argwhere(np.abs(values) > LARGEST)
    if len(large):
        row, column = large[0]
        value = values[row, column]
        reason = "infinite" if np.isinf(value) else "too large to compute with"
        raise DataError(
            f"{_cell(contents, view, numbers.columns[column], row, f'{value:g}')}, which is "
            f"{reason}: write another number in the file, or leave the cell empty and fit with "
            "--impute."
        )


def refuse_texts(
    frame: pd.DataFrame, contents: Contents, view: str, names: Collection[str], reason: str
) -> None:
    """Raise if one of the columns `names`, which must have numbers for a `reason`, has a text."""
    for name in _texts_of(frame):
        if name not in names:
            continue
        rows = np.flatnonzero([is_other_text(entry) for entry in frame[name]])
        if len(rows):
            value = repr(str(frame[name].iloc[rows[0]]))
            raise DataError(
                f"{_cell(contents, view, name, rows[0], value)}, but {reason}: write a number in "
                "the file, or leave the cell empty and fit with --impute."
            )


def _check_texts(column: pd.Series, contents: Contents, view: str, columns: Sequence[str]) -> None:
    """Raise if texts are no categories, or print a note if few numbers are read as text."""
    name, path = str(column.name), str(contents.path)
    present = column.dropna().map(lambda entry: str(entry).strip())
    detected = disguise(list(present.unique()))
    ways = [] if detected is None else [way for word, way in _WAYS_OUT if word in detected[1]]
    numbers = ""
    if ways and detected is not None:
        example, content, _ = detected
        row = [str(entry).strip() for entry in column].index(example)
        numbers = f"{_cell(contents, view, name, row, repr(example))}: these are {content}, read "
    others = np.flatnonzero([is_other_text(entry) for entry in column])
    problem = ""
    try:
        refuse_no_categories(present.to_numpy(dtype=object), "it", name)
    except NoCategoriesError as error:
        problem = str(error).replace(error.advice, "").strip()
    if not problem:
        note_similar(column, f"{path!r}: entries of column {name!r}")
    if not problem and not 0 < 2 * len(others) < len(present):
        if numbers:
            note(f"{numbers}as categories. If they are not, {ways[0]}.")
        return
    if numbers:
        raise DataError(f"{numbers}as text; {ways[0]}.")
    if not len(others):
        value = repr(str(present.iloc[0]))
        row = int(np.flatnonzero(column.notna())[0])
        raise DataError(
            f"{_cell(contents, view, name, row, value)}: these are numbers stored as text; "
            "store them as numbers in the file."
        )
    if 2 * len(others) <= len(present):
        value = repr(str(column.iloc[others[0]]))
        raise DataError(
            f"{_cell(contents, view, name, others[0], value)}, but most rows have numbers: write "
            "a number in the file, or leave the cell empty and fit with --impute."
        )
    kernel = f"text={path}:{name}"
    rest = [other for other in columns if other != name]
    advice = (
        f"Compare its texts with a string kernel, --view {shlex.quote(f'{kernel}:spectrum')} (of "
        f"SMILES {shlex.quote(f'{kernel}:molecules')}), or as categories, --view "
        f"{shlex.quote(f'{kernel}:categorical')}"
    )
    if rest:
        selected = ",".join(rest if len(rest) < 6 else [*rest[:2], "…"])
        chosen = shlex.quote(f"{view}={path}:{selected}")
        advice += f", and select the other columns, --view {chosen}"
    problem = re.sub("^it ", "", problem)
    raise DataError(
        f"{path!r}: column {name!r} of view {view!r} {problem} {advice}. If it names the "
        f"samples, pass --index {shlex.quote(name)}."
    )


def note_similar(values: pd.Series, what: str) -> None:
    """Print a note of texts that differ only by spaces around them, or by case."""
    forms: dict[str, list[str]] = {}
    for text in dict.fromkeys(entry for entry in values if isinstance(entry, str)):
        forms.setdefault(text.strip().casefold(), []).append(text)
    for texts in forms.values():
        if len(texts) > 1:
            note(
                f"{what} look the same but for spaces or case: {listed(texts)}. If they are one, "
                "write it in one way in the file."
            )
            return


def _texts_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns of text; declared categories are not among them."""
    return [
        str(name)
        for name, dtype in frame.dtypes.items()
        if pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)
    ]


def is_other_text(entry: object) -> bool:
    """Return whether a cell is a text other than a number."""
    return isinstance(entry, str) and not is_plain_number(entry.strip())


def _cell(contents: Contents, view: str, column: object, row: Any, value: str) -> str:
    """Return the place and value of a cell as text; rows are counted from 1."""
    label = "" if contents.labels is None else f" ({str(contents.labels[row])!r})"
    return (
        f"{str(contents.path)!r}: column {str(column)!r} of view {view!r} has {value} in row "
        f"{row + 1}{label}"
    )
