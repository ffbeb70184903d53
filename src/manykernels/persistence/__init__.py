"""Saving and loading of fitted models: :func:`save`, :func:`load`.

A file is an archive with the arrays of a model and a tree of its objects, in the format of skops,
and a format version. Models can also be pickled, but a pickle can run any code when it is opened.
Files loaded here run no code of the file:

- The tree contains names of types, and nothing else could be executed. Every name is compared with
  a list before anything is restored, and files with other names are refused (`trusted.py`). The
  classes of this package are marked where they are defined (`utils/storable.py`).
- Classes of this package and of scikit-learn are not called: objects are created without
  ``__init__`` and given their attributes. Only types of Python and NumPy for texts, numbers and
  containers, and named tuples, are called with values of the file.
- Functions are not stored, except for NumPy's ufuncs and the scores of scikit-learn, which are
  looked up by name and not called.
- Arrays are read without unpickling. Arrays of objects are stored as lists of texts and numbers.

An archive may also be damaged, or be designed to exhaust memory. Sizes, names, checksums, numbers
of nodes and depth are checked first (`archive.py`, `trusted.py`), and skops reads a new archive of
the checked contents. Any problem raises :class:`ModelFileError`.

Data frames, arrays of objects and dicts with other keys than texts, which skops does not support,
are stored as other objects (`plain.py`).
"""

from .archive import ModelFileError
from .models import load, save

__all__ = ["ModelFileError", "load", "save"]
