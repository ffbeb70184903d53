"""The scikit-learn face of the library."""

from .fda import MKFDA
from .fda_cv import MKFDACV
from .localized_fda import LocalizedFDA
from .localized_one_class import LocalizedOneClassSVM
from .localized_svc import LocalizedSVC
from .localized_svr import LocalizedSVR
from .one_class import MKOneClassSVM
from .svc import MKSVC
from .svr import MKSVR

__all__ = [
    "MKFDA",
    "MKFDACV",
    "MKSVC",
    "MKSVR",
    "LocalizedFDA",
    "LocalizedOneClassSVM",
    "LocalizedSVC",
    "LocalizedSVR",
    "MKOneClassSVM",
]
