"""Programs of the papers, as solvers of the same problem.

They serve for comparison and to reproduce published results. All but "sdp-approx" reach the
minimum of the default solver; most take longer. Numbers in parentheses are equations of papers.

| solver | method | paper | module |
|---|---|---|---|
| ``"analytic"`` | weights in closed form | Kloft et al. 2011 | ``descent`` |
| ``"sip"``, ``"silp"`` | cutting planes, any p; p = 1 | Yan 2012; Ye 2008 | ``sip`` |
| ``"dual"`` | L-BFGS on the dual without weights | Yan 2012 | ``descent`` |
| ``"reduced-gradient"`` | SimpleMKL | Rakotomamonjy et al. 2008 | ``descent`` |
| ``"qcqp"`` | quadratically constrained program | Lanckriet et al. 2004; Ye 2008 | ``conic`` |
| ``"sdp"``, ``"sdp-approx"`` | semidefinite programs | Ye 2008 | ``conic`` |
| ``"smo-mkl"`` | pair steps on the dual without weights | Vishwanathan et al. 2010 | ``smo_mkl`` |

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from manykernels import MKFDA
>>> X, y = load_iris(return_X_y=True)
>>> for solver in ("silp", "reduced-gradient", "qcqp", "sdp"):
...     assert MKFDA(p=1, reg=1.0, solver=solver, tol=1e-3).fit(X, y).certificate_.converged
"""
