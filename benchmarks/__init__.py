"""Benchmarks on public data: ``python -m benchmarks.core`` from the root of the repository."""
