"""Solvers for kernels that do not fit into memory: a few columns of them at a time.

Both improve the dual variables of some samples, then the weights by relaxed analytic updates
(:mod:`~manykernels.solvers.updates`), in turn. No m×m matrix is formed: memory is that of one
block of samples squared, of the n·m·c products ``K_jv``, and of cached columns (`cache_bytes`).

| solver | loss | module |
|---|---|---|
| ``"coordinate"`` | square loss | :mod:`~manykernels.solvers.columns.coordinate` |
| ``"interleaved"`` | support vector machines | :mod:`~manykernels.solvers.columns.interleaved` |
"""
