"""Columns that are no categories: texts nearly all different, numbers and dates in disguise."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

# Letters of an example in an error message.
_LONGEST_SHOWN = 40

# A category tells something about a row because other rows have it, too. If more than nine in ten
# texts occur once, hardly any does: every row is like itself only. Names, texts, molecules and
# measurements have hardly a repeat; among 20 rows nine in ten single categories would be a strange
# accident, among fewer it may well be one.
_FEWEST_TEXTS, _MOSTLY_DIFFERENT = 20, 0.9
# Numbers and dates written as text are no categories, either, if there are more than these.
_MOST_LEVELS = 20
# Digits that numbers have at least which may be a string of zeros and ones.
_MANY_DIGITS = 1e7

_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_TIME = r"([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*(Z|[AaPp][Mm]|[-+]\d{2}:?\d{2})?)?"
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_PLAIN, _BITS = "plain numbers", "strings of zeros and ones"
# What texts may be instead of categories, by a pattern that all of them match, and what to do.
_DISGUISES = (
    (r"[01]{16,}", _BITS, "make a column of every letter, such as by "
     "pd.DataFrame([list(map(int, text)) for text in column]), for the kernel Jaccard"),
    (_NUMBER, _PLAIN, "pd.to_numeric(column)"),
    (rf"{_NUMBER}\s*%", "percentages", "pd.to_numeric(column.str.rstrip('% '))"),
    (r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", "numbers with commas between thousands",
     "pd.to_numeric(column.str.replace(',', ''))"),
    (r"[-+]?(\d{1,3}(\.\d{3})*|\d+),\d+", "numbers with a decimal comma",
     "read_csv(..., decimal=','), or pd.to_numeric(column.str.replace('.', '', regex=False)"
     ".str.replace(',', '.'))"),
    (rf"[<>≤≥~]=?\s*{_NUMBER}", "numbers with limits of a measurement",
     "pd.to_numeric(column.str.lstrip('<>≤≥~= ')), if a limit may stand for the number"),
    (rf"(\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.](\d{{4}}|\d{{2}})|"
     rf"\d{{1,2}}\.? {_MONTH},? \d{{4}}|{_MONTH} \d{{1,2}},? \d{{4}}){_TIME}", "dates",
     "(pd.to_datetime(column) - pd.Timestamp('2000-01-01')) / pd.Timedelta('1D')"),
)  # fmt: skip


class NoCategoriesError(ValueError):
    """A column of text is not compared as categories; `advice`, the end of the message, says how.

    Whoever has no code to write, such as at the command line, needs another advice.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(f"{message} {advice}".rstrip())
        self.advice = advice


def refuse_no_categories(entries: np.ndarray, label: str, name: Any) -> None:
    """Refuse a column of texts that are no categories: nearly all different, numbers, dates."""
    texts = [entry.strip() for entry in entries if isinstance(entry, str)]
    different = list(dict.fromkeys(texts))
    nearly_all = len(texts) >= _FEWEST_TEXTS and len(different) > _MOSTLY_DIFFERENT * len(texts)
    if nearly_all or len(different) > _MOST_LEVELS:
        # Codes such as 01234 are written as numbers, and may be categories if they repeat.
        refuse_disguised(different, label, plain=nearly_all)
    if nearly_all:
        shown = different[0][:_LONGEST_SHOWN] + "…" * (len(different[0]) > _LONGEST_SHOWN)
        raise NoCategoriesError(
            f"{label} is text, and {len(different)} of {len(texts)} entries are different, such "
            f"as {shown!r}: these are no categories.",
            f"Compare them by a kernel of strings, Spectrum(3).on({name!r}), or of words, "
            f"Cosine().on({name!r}).after(TfidfVectorizer()); or leave the column out, by "
            f"X.drop(columns={name!r}) or kernels of others, .on(columns). If these are "
            "categories, say so: .astype('category').",
        )


def refuse_disguised(texts: list[str], label: str, *, plain: bool) -> None:
    """Refuse texts that are numbers or dates all of them; `plain` numbers only if told so."""
    found = _disguise(texts)
    if found is None or (found[1] == _PLAIN and not plain):
        return
    example, what, way_out = found
    raise NoCategoriesError(
        f"{label} holds {what}, such as {example!r}, as text, which would be taken for "
        f"{len(texts)} categories.",
        f"Convert it: {way_out}. If these are categories, say so: .astype('category').",
    )


def _disguise(texts: list[str]) -> tuple[str, str, str] | None:
    """What all texts are, if they are no categories: an example, a name and what to do."""
    plain = re.compile(_NUMBER)
    for pattern, what, way_out in _DISGUISES:
        matches = re.compile(pattern, re.IGNORECASE).fullmatch
        # Plain numbers may be among others.
        if all(matches(text) or plain.fullmatch(text) for text in texts):
            example = next((text for text in texts if matches(text)), None)
            if example is not None and (what != _BITS or all(map(matches, texts))):
                return example, what, way_out
    return None


def refuse_letters_read_as_digits(values: np.ndarray, labels: Callable[[int], str]) -> None:
    """Refuse columns of numbers that were strings of zeros and ones, read as one number."""
    if not values.size:
        return
    for j in np.flatnonzero(values.max(axis=0) >= _MANY_DIGITS):
        if _count_of_ones(values[0, j]) is None:  # as in nearly all columns
            continue
        ones = [_count_of_ones(value) for value in np.unique(values[:, j])]
        # Powers of ten, such as doses, have a single one.
        if None not in ones and np.median(ones) >= 2:  # type: ignore[arg-type]
            raise ValueError(
                f"{labels(int(j))} holds numbers of zeros and ones only, such as "
                f"{values[:, j].max():.4g}: strings such as fingerprints that were read as one "
                "number. Read it as text, such as by read_csv(..., dtype=str), and make a column "
                "of every letter, for the kernel Jaccard."
            )


def _count_of_ones(value: float) -> int | None:
    """How many ones a number has, of the digits that a float keeps; None if it has others."""
    if value < 0.0 or value % 1.0:
        return None
    digits = f"{value:.14e}".partition("e")[0].replace(".", "")
    return digits.count("1") if set(digits) <= {"0", "1"} else None
