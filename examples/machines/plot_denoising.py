"""
Noise inside of kernels
=======================

A kernel with a small weight still brings all of its noise. Yan et al. (2010) therefore clean each
kernel before they weigh it: keep the leading axes of its feature space, drop the others. How many
axes is a choice to be made for every kernel. Bands leave that choice to the weights: every kernel
is cut into ranges of axes, each a kernel of its own, and all are weighed in one convex problem.

Neither replaces regularisation. What the weights minimise is an error of the training samples,
and with too little regularisation that is smallest where most axes are: in the noise.
"""

# %%
# Three views of handwritten digits, each under Gaussian noise of twice the size of its columns.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from manykernels import MKFDA, Bands, Denoise, Views
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF
from manykernels.kernels.spectral import VARIANCES

rng = np.random.default_rng(0)
views, y = load_digit_views()
names = ["pixels", "gradients", "coarse"]
noisy = {
    name: views[name] + 2 * views[name].std(axis=0) * rng.standard_normal(views[name].shape)
    for name in names
}
X = Views(noisy)
cv = StratifiedShuffleSplit(3, train_size=200, test_size=1000, random_state=0)

# %%
# The same model on the kernels as they are, cleaned, and cut into bands, with hardly any
# regularisation and with enough. The variance to keep is chosen on each kernel alone, by the error
# in five folds whose axes are found without them.

REGS = (0.01, 10.0)
WAYS = {"as they are": None, "denoised": Denoise("cv"), "bands": Bands(5)}
models = {}
print(f"{'test accuracy':<16}" + "".join(f"{f'λ = {reg:g}':>12}" for reg in REGS))
for way, denoise in WAYS.items():
    line = f"{way:<16}"
    for reg in REGS:
        model = models[way, reg] = MKFDA(RBF(gamma="median"), reg=reg, denoise=denoise)
        scores = [model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in cv.split(X, y)]
        line += f"{np.mean(scores):>12.1%}"
    print(line)

# %%
# Here cleaning every kernel by itself costs accuracy: axes that are of no use to one kernel alone
# can be of use beside others. Bands keep them and weigh them.
#
# For the last split: the errors from which variances were chosen, and what bands got. Each band
# holds a fifth of the variance, the first of few axes and the last of most.

COLORS = {"pixels": "#2a6f97", "gradients": "#c55a11", "coarse": "#5b8c5a"}
denoise = models["denoised", REGS[1]].denoise_
fig, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
for j, name in enumerate(names):
    errors = denoise.cv_errors_[j]
    axes[0].plot(VARIANCES, errors, "o-", ms=3, color=COLORS[name], label=name)
    axes[0].plot(VARIANCES[errors.argmin()], errors.min(), "o", ms=9, color=COLORS[name])
    for ax, reg in zip(axes[1:], REGS, strict=True):
        bands = models["bands", reg]
        mine = bands.denoise_.sources_ == j
        places = np.arange(mine.sum()) + 0.25 * (j - 1)
        ax.bar(places, bands.weights_[mine], 0.25, color=COLORS[name])
        labels = [full.removeprefix(name) for full in np.array(bands.kernel_names_)[mine]]
        ax.set_xticks(np.arange(len(labels)), labels, fontsize=7)
        ax.set_xlabel("range of variance")
        ax.set_title(f"Weights of bands, λ = {reg:g}", loc="left", weight="bold", fontsize=10)
axes[0].set_title("Error of one kernel, held out", loc="left", weight="bold", fontsize=10)
axes[0].set_xlabel("variance kept")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False)
plt.show()
