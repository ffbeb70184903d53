"""Fitted models in files: :func:`save`, :func:`load`.

A file is an archive with the arrays of a model and a tree of its objects, in the format of skops,
and a version of the format. Pickle works as well, but whoever writes a pickle decides what code
runs when it is opened. Why a file that is loaded here runs none:

- The tree names types, and nothing else could be executed. Every name is compared with a list
  before anything is restored, and a file with others is refused by their names (`trusted.py`). The
  classes of this package are marked where they are defined (`utils/storable.py`).
- A class of this package or of scikit-learn is not called: an object is made without
  ``__init__`` and given its attributes. What is called with values of the file are types of
  Python and NumPy that make texts, numbers and containers, and tuples with names.
- Functions are not stored, but for NumPy's functions of arrays and the scores of scikit-learn,
  which are found by name and not called.
- Arrays are read without unpickling. Those of objects are lists of texts and numbers.

An archive may also be damaged, or made to exhaust memory. Sizes, names, checksums, numbers of
nodes and depth are checked first (`archive.py`, `schema.py`), and skops is handed a new archive
of what has been checked. Whatever is wrong is a :class:`ModelFileError`.

Data frames, arrays of objects and dicts with other keys than texts, which skops does not know, are
replaced by what stands for them (`packing.py`, `frames.py`, `plain.py`).
"""

from .archive import ModelFileError
from .models import load, save

__all__ = ["ModelFileError", "load", "save"]
