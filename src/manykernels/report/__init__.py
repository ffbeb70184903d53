"""What a set of kernels is like: reports to print and to draw."""

from .sparsity import PAPER_NORMS, SparsityReport, effective_number, sparsity_report

__all__ = ["PAPER_NORMS", "SparsityReport", "effective_number", "sparsity_report"]
