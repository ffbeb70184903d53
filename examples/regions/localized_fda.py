"""
Localized estimators with a gate
================================

The gates of localized kernels can be combined with several machines. Besides
:class:`~manykernels.LocalizedSVC` there are Fisher's discriminant, regression and the one-class
machine, with the same gates and the same methods to inspect them: how is each kernel used, and how
many kernel evaluations does the gate save?
"""

# %%
# A zigzag class boundary with three straight parts.

import matplotlib.pyplot as plt
import numpy as np

from manykernels import (
    MKFDA,
    MKSVC,
    MKSVR,
    LocalizedFDA,
    LocalizedOneClassSVM,
    LocalizedSVC,
    LocalizedSVR,
    MKOneClassSVM,
)
from manykernels.gating import Softmax
from manykernels.kernels import RBF, Polynomial

rng = np.random.default_rng(0)


def zigzag(n):
    """Return points in a square, the height of the zigzag at each point, and the class."""
    X = rng.uniform(-1, 1, (n, 2))
    height = np.interp(X[:, 0], [-1, -0.4, 0.4, 1], [-0.8, 0.7, -0.7, 0.8])
    return X, height, X[:, 1] > height


X, height, y = zigzag(300)
X_test, height_test, y_test = zigzag(2000)
line = Polynomial(1, gamma=1.0)
lines = [(f"line {j}", line) for j in (1, 2, 3)]
# Settings of the paper: softmax gates of all columns, learnt until the objective converges. The
# best of three random starts is kept.
gate = Softmax(features=slice(None), penalty=0.0, early_stopping=0, quasi_newton=False, n_init=3)
options = {"gating": gate, "normalize": None, "tol": 1e-2}

# %%
# Three linear kernels with a gate, compared with one linear kernel without a gate. The test scores
# are accuracies, and R² for the regression of the height on the first column.

fda = LocalizedFDA(lines, reg=0.1, **options).fit(X, y)
svc = LocalizedSVC(lines, C=10.0, **options).fit(X, y)
svr = LocalizedSVR(lines, C=10.0, epsilon=0.02, **options).fit(X[:, :1], height)
plain = [
    MKFDA([line], reg=0.1, normalize=None).fit(X, y),
    MKSVC([line], C=10.0, normalize=None).fit(X, y),
    MKSVR([line], C=10.0, epsilon=0.02, normalize=None).fit(X[:, :1], height),
]
tests = [(X_test, y_test), (X_test, y_test), (X_test[:, :1], height_test)]
print(f"{'test score':<24}{'one line':>10}{'three lines and a gate':>24}")
for alone, gated, test in zip(plain, (fda, svc, svr), tests, strict=True):
    print(f"{type(gated).__name__:<24}{alone.score(*test):>10.3f}{gated.score(*test):>24.3f}")

# %%
# The one-class machine is fitted without labels to points near the zigzag and should reject other
# points of the square. It has one Gaussian kernel, or two with a gate. The gate does not help
# here, because a Gaussian kernel is already local.

near = np.column_stack([X[:, 0], height + 0.03 * rng.standard_normal(len(X))])
fresh = np.column_stack([X_test[:, 0], height_test + 0.03 * rng.standard_normal(len(X_test))])
bell = RBF(2.0)
detectors = [
    MKOneClassSVM([bell], nu=0.05, normalize=None).fit(near),
    LocalizedOneClassSVM([("first", bell), ("second", bell)], nu=0.05, **options).fit(near),
]
print(f"\n{'accepted':<24}{'of fresh points':>16}{'of any points':>16}")
for detector in detectors:
    rates = [np.mean(detector.predict(points) > 0) for points in (fresh, X_test)]
    print(f"{type(detector).__name__:<24}{rates[0]:>16.1%}{rates[1]:>16.1%}")

# %%
# The certificate of a gated model refers to a local minimum. It contains the gradient at the
# solution and the duality gap of the machine.

proof = fda.certificate_
print(f"\nLocalizedFDA, objective from each start: {np.round(fda.restart_objectives_, 6)}")
print(f"gradient {proof.gradient_norm:.0e}, inner gap {proof.inner_gap:.0e} of the objective")

# %%
# For each kernel: the mean of its gate, the number of samples at which it is active, the number at
# which its gate is the largest, and the number of support vectors.

print("\nregion_summary() of LocalizedSVC")
print(f"{'kernel':<10}{'mean gate':>10}{'active':>8}{'largest':>9}{'support':>9}")
for row in svc.region_summary():
    print(
        f"{row['kernel']:<10}{row['mean_gate']:>10.2f}{row['n_active']:>8d}"
        f"{row['n_largest']:>9d}{row['n_support']:>9d}"
    )

# %%
# A kernel need not be evaluated where its gate is zero.

print("\nkernel values for a prediction on the test points")
for model in (fda, svc):
    count = model.evaluations(X_test)
    print(
        f"{type(model).__name__:<14}{count.total:>9d}, of which {count.saved / count.total:.0%} "
        f"are saved by the gate"
    )

# %%
# Figure
# ------
# The kernel with the largest gate at each test point, and the class boundary.

fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
order = np.argsort(X_test[:, 0])
for ax, model in zip(axes, (fda, svc), strict=True):
    largest = np.argmax(model.gate(X_test), axis=1)
    colors = np.array(["#0072b2", "#d55e00", "#009e73"])[largest]
    ax.scatter(*X_test.T, s=5, c=colors)
    ax.plot(X_test[order, 0], height_test[order], color="black", linewidth=2)
    ax.set(title=f"{type(model).__name__}, {model.score(X_test, y_test):.1%}")
plt.show()
