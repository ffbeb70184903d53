"""
Kernel weights for every region, with a certificate
===================================================

The informative features may differ between regions of the data. A gate that is learnt together
with the machine (:class:`~manykernels.LocalizedSVC`) can detect this, but its objective has many
local minima. :class:`~manykernels.ConvexLocalizedSVC` finds regions first, without labels. Then it
learns kernel weights for each region, which is a convex problem with a certified solution (Lei et
al. 2016). The regions are not adapted to the labels.
"""

# %%
# The samples come from two places, such as two hospitals. In the first place the label depends on
# measurement a, in the second on measurement b; c is noise. Four other measurements identify the
# place.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.mixture import GaussianMixture

from manykernels import MKSVC, ConvexLocalizedSVC
from manykernels.display import WeightsDisplay
from manykernels.gating import GivenRegions, KernelRegions
from manykernels.kernels import RBF


def samples(n, rng):
    second = rng.uniform(size=n) < 0.4
    where = np.where(second[:, None], 1.5, -1.5) + rng.standard_normal((n, 4))
    a, b, c = rng.uniform(-1, 1, (3, n))
    y = np.where(second, b, a) + 0.2 * rng.standard_normal(n) > 0
    return np.column_stack([where, a, b, c]), y


rng = np.random.default_rng(0)
X, y = samples(300, rng)
X_test, y_test = samples(4000, rng)
kernels = [
    ("where", RBF().on(slice(0, 4))),
    ("a", RBF(1.0).on([4])),
    ("b", RBF(1.0).on([5])),
    ("c", RBF(1.0).on([6])),
]

# %%
# Without regions, the weights are the same in both places. With regions they differ. Here the
# regions are the components of a Gaussian mixture, fitted to the measurements of the place. The
# certificate bounds the distance from the optimum for these regions.

place = GivenRegions(GaussianMixture(2, random_state=0), columns=slice(0, 4))
plain = MKSVC(kernels, p=1.2).fit(X, y)
model = ConvexLocalizedSVC(kernels, p=1.2, regions=place).fit(X, y)
print(f"relative gap {model.certificate_.rel_gap:.0e}, machines trained {model.n_inner_solves_}")
for row in model.region_weights():
    print(f"region {row['region']} ({row['size']:.0%})  {row['kernel']:6s} {row['weight']:.2f}")

# %%
# If the regions are not known, they are found by k-means on the mean of all kernels. They differ
# from the two places, because the mean kernel contains all measurements. Here they are nearly as
# good: the product of a kernel with the memberships in a region depends on two measurements at
# once.

models = {"no regions": plain, "by place": model}
for n_regions in (2, 4, 8, 16):
    regions = KernelRegions(n_regions, sharpness=4)
    models[f"{n_regions} found"] = ConvexLocalizedSVC(kernels, p=1.2, regions=regions).fit(X, y)
scores = {name: model.score(X_test, y_test) for name, model in models.items()}
for name, score in scores.items():
    print(f"{name:12s} test accuracy {score:.1%}")

# %%
# Left: weights of each region. Right: accuracy on new samples.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
WeightsDisplay.from_estimator(model, ax=left, sort=False)
left.set_title("Kernel weights by place", loc="left", weight="bold", fontsize=10)
bars = right.barh(list(scores), list(scores.values()), color="#2a6f97")
right.bar_label(bars, fmt="{:.1%}", padding=3)
right.set_title("Test accuracy", loc="left", weight="bold", fontsize=10)
right.set_xlim(0.5, 1.0)
right.invert_yaxis()
right.spines[["top", "right"]].set_visible(False)
plt.show()
