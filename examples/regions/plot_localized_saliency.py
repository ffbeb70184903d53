"""
Gates as a saliency map
=======================

Images are divided into patches, and there is one kernel per patch. :class:`~manykernels.MKSVC`
learns one weight for each patch, the same for all images. :class:`~manykernels.LocalizedSVC` uses
a coarse version of each image to select the patches that are compared at full resolution. Its
gates are a saliency map, as in figure 5 of Gönen and Alpaydın (2013).
"""

# %%
# If the folder ``MANYKERNELS_DATA`` contains the faces of the paper, they are used: 400 portraits
# of 40 persons, the four women against the men. The same persons occur in the training and the
# test images, as in the paper. Otherwise the images are handwritten digits, 3 against 8.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.io import loadmat
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import FunctionTransformer

from manykernels import MKSVC, LocalizedSVC
from manykernels.gating import Sigmoid, Softmax
from manykernels.kernels import Linear

faces = Path(os.environ.get("MANYKERNELS_DATA", ""), "olivetti", "olivettifaces.mat")
if faces.is_file():
    images = loadmat(faces)["faces"].T.reshape(400, 64, 64).transpose(0, 2, 1) / 255.0
    y = np.isin(np.repeat(np.arange(40), 10), [7, 9, 31, 34])
    coarse_size, names, cmap = 8, ("man", "woman"), "gray"
else:
    digits = load_digits()
    selected = np.isin(digits.target, (3, 8))
    images, y = digits.images[selected] / 16.0, digits.target[selected] == 8
    coarse_size, names, cmap = 4, ("3", "8"), "gray_r"
size = images.shape[1]


def blocks(images, n):
    """Divide images into n × n blocks; the shape is (images, n * n, pixels of a block)."""
    side = images.shape[1] // n
    cut = images.reshape(len(images), n, side, n, side).swapaxes(2, 3)
    return cut.reshape(len(images), n * n, side * side)


def coarse(X):
    """Return the gating features: means over blocks."""
    return blocks(X.reshape(-1, size, size), coarse_size).mean(axis=2)


# %%
# Sixteen linear kernels, one per patch. With sigmoid gates several patches can have a large
# weight; softmax gates sum to one. Gates that are learnt until convergence are sharp and give a
# clear figure. With the default early stopping they are smoother, and predictions are as good or
# better.

pixels = blocks(np.arange(size**2).reshape(1, size, size), 4)[0]
patches = [(f"patch {j}", Linear().on(list(columns))) for j, columns in enumerate(pixels)]
X = images.reshape(len(images), -1)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.3, stratify=y, random_state=0
)
mean = X_train.mean(axis=0)
options = {"C": 1.0, "normalize": "multiplicative"}
to_the_end = {"penalty": 0.0, "early_stopping": 0, "threshold": 1e-4}
forms = [form(features=FunctionTransformer(coarse), **to_the_end) for form in (Sigmoid, Softmax)]
one_weight = MKSVC(patches, p=1, **options).fit(X_train - mean, y_train)
gated = {
    gate.name: LocalizedSVC(patches, gating=gate, tol=1e-4, **options).fit(X_train - mean, y_train)
    for gate in forms
}

# %%
# Sigmoid gates leave out some of the patches, depending on the image. Softmax gates use fewer
# patches per image, which saves more kernel evaluations but is less accurate.

print(f"{'':<26}{'test accuracy':>14}{'patches in use':>16}{'kernel values saved':>21}")
used = np.count_nonzero(one_weight.weights_)
score = one_weight.score(X_test - mean, y_test)
print(f"{'one weight per patch':<26}{score:>14.1%}{used:>16.1f}{1 - used / 16:>21.0%}")
for name, model in gated.items():
    used = model.active_kernels(X_test - mean).sum(axis=1).mean()
    count = model.evaluations(X_test - mean)
    score = model.score(X_test - mean, y_test)
    print(f"{f'{name} gates':<26}{score:>14.1%}{used:>16.1f}{count.saved / count.total:>21.0%}")

# %%
# Six test images, three of each class. Weights without a gate are the same for all images; gates
# depend on the image.

shown = np.concatenate([np.flatnonzero(y_test == label)[:3] for label in (False, True)])
Z = X_test[shown]
gates = {name: model.gate(Z - mean).reshape(-1, 4, 4) for name, model in gated.items()}
weights = one_weight.weights_.reshape(4, 4) / one_weight.weights_.max()
opened = Z.reshape(-1, size, size) * np.kron(gates["sigmoid"], np.ones((size // 4, size // 4)))
grey, blue = ({"cmap": name, "vmin": 0, "vmax": 1} for name in (cmap, "Blues"))
rows = {
    "image": (Z.reshape(-1, size, size), grey),
    "one weight\nper patch": ([weights] * len(Z), blue),
    "what the\ngate sees": (coarse(Z).reshape(-1, coarse_size, coarse_size), grey),
    "sigmoid\ngates": (gates["sigmoid"], blue),
    "image times\nsigmoid gates": (opened, grey),
    "softmax\ngates": (gates["softmax"], blue),
}
fig, axes = plt.subplots(len(rows), len(shown), figsize=(8, 7.4), layout="constrained")
for line, (label, (pictures, style)) in zip(axes, rows.items(), strict=True):
    for ax, image in zip(line, pictures, strict=True):
        drawn = ax.imshow(image, **style)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(label, rotation=0, ha="right", va="center")
for ax, label in zip(axes[0], y_test[shown], strict=True):
    ax.set_title(names[int(label)], fontsize=10)
fig.colorbar(drawn, ax=axes, shrink=0.4, label="gate, or weight as a part of the largest")
plt.show()
