"""The dtypes under the name that scripts written for tinygrad import them by."""

from glassgrad.base.dtype import ConstType, DType, DTypeLike, dtypes, promote, sum_dtype, to_dtype

least_upper_dtype = promote
sum_acc_dtype = sum_dtype

__all__ = [
    "ConstType",
    "DType",
    "DTypeLike",
    "dtypes",
    "least_upper_dtype",
    "promote",
    "sum_acc_dtype",
    "to_dtype",
]
