"""Data sets: bundled, simulated and public data, and readers of files of sequences and gene sets.

As in scikit-learn, `load_` functions return bundled data, `make_` functions simulated data, and
`fetch_` functions public data, which are downloaded if necessary; `read_` functions read a file.
"""

from ..kernels.sets import read_gmt
from .fasta import read_fasta
from .fetching import fetch_dataset
from .views import (
    load_digit_views,
    make_gauss4,
    make_survival_views,
    make_views,
    make_yan_simulation,
)

__all__ = [
    "fetch_dataset",
    "load_digit_views",
    "make_gauss4",
    "make_survival_views",
    "make_views",
    "make_yan_simulation",
    "read_fasta",
    "read_gmt",
]
