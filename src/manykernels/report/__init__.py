"""What a set of kernels is like: reports to print and to draw."""

from .sparsity import SparsityReport, effective_number, sparsity_report

__all__ = ["SparsityReport", "effective_number", "sparsity_report"]
