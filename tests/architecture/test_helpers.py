"""glassgrad.helpers and glassgrad.dtype: complete, and nothing but names of others."""

import glassgrad
import glassgrad.dtype as dtype_names
from glassgrad import helpers
from glassgrad.base.dtype import dtypes

USED_BY_SCRIPTS = [
    "Context",
    "GlobalCounters",
    "Timing",
    "Profiling",
    "tqdm",
    "trange",
    "getenv",
    "fetch",
    "colored",
    "ansistrip",
    "prod",
    "argfix",
    "flatten",
    "partition",
    "all_same",
    "make_tuple",
    "DEBUG",
    "from_mv",
    "to_mv",
    "mv_address",
    "temp",
    "CI",
    "OSX",
    "WINO",
    "BEAM",
    "NOOPT",
    "JIT",
    "diskcache",
    "ContextVar",
    "dtypes",
    "DEV",
]


def test_every_name_that_scripts_use_exists():
    missing = [name for name in USED_BY_SCRIPTS if not hasattr(helpers, name)]
    assert not missing


def test_all_is_complete_and_sorted_names_exist():
    for module in (helpers, dtype_names):
        assert all(hasattr(module, name) for name in module.__all__)
        assert len(set(module.__all__)) == len(module.__all__)
    public = {name for name in vars(helpers) if not name.startswith("_")} - {"platform"}
    assert public == set(helpers.__all__)


def test_dtype_names_are_the_same_objects():
    assert dtype_names.dtypes is dtypes
    assert dtype_names.least_upper_dtype(dtypes.int, dtypes.half) is dtypes.half


def test_names_of_older_modules_are_available():
    from glassgrad.engine import jit
    from glassgrad.tensor import Tensor

    assert Tensor is glassgrad.Tensor
    assert jit.TinyJit is glassgrad.TinyJit
    assert helpers.dtypes is dtypes


def test_ints_of_one_size_are_groups():
    assert dtypes.int16s == (dtypes.uint16, dtypes.int16)
    assert {*dtypes.int8s, *dtypes.int16s, *dtypes.int32s, *dtypes.int64s} == set(dtypes.ints)
