"""
What a model has learnt, as one page
====================================

Which views matter, how sure that is, and how good the model is: in one HTML file that needs
neither a network nor scripts, so it can be sent, printed and kept beside the results.

Three views tell about four classes, a fourth is a copy of the first, and two are noise.
Predictions are judged by samples that the model has not seen; training samples would be judged by
left-out answers, and never by a score on what was learnt.
"""

# %%
from pathlib import Path

from sklearn.model_selection import train_test_split

from manykernels import MKFDA, view_importance
from manykernels.datasets import make_views
from manykernels.kernels import RBF
from manykernels.report import report

views, y, _ = make_views(600, n_classes=4, n_copies=1, n_noise=2, signal=2.0, random_state=0)
X_train, X_new, y_train, y_new = train_test_split(views, y, train_size=300, random_state=0)
model = MKFDA(RBF(), p=1.2, reg=1).fit(X_train, y_train)

# %%
# How much each view is worth is measured on the training samples, predictions on new ones.
importance = view_importance(model, X_train, y_train, n_resamples=20)
page = report(model, X_new, y_new, importance=importance)
for answer in page.data["answers"]:
    print(f"{answer['question']} {answer['answer']}")
    print(f"    {answer['detail']}")

# %%
# All that the page says is in ``page.data``, which JSON can hold.
Path("out").mkdir(exist_ok=True)
page.save("out/report.html")
parts = ", ".join(name for name, part in page.data.items() if isinstance(part, dict))
print(f"out/report.html has {parts}.")
