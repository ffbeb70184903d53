"""Data: views bundled or made, public sets from a folder or the web, sequences from files.

`load_` reads what is bundled with scikit-learn, `make_` draws, `fetch_` downloads what is not in
the folder of data yet, `read_` reads a file.
"""

from .fasta import read_fasta
from .fetching import fetch_dataset
from .views import load_digit_views, make_gauss4, make_views, make_yan_simulation

__all__ = [
    "fetch_dataset",
    "load_digit_views",
    "make_gauss4",
    "make_views",
    "make_yan_simulation",
    "read_fasta",
]
