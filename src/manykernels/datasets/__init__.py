"""Small data sets that come without a download, and sequences read from files."""

from .digits import load_digit_views
from .fasta import FastaRecords, read_fasta

__all__ = ["FastaRecords", "load_digit_views", "read_fasta"]
