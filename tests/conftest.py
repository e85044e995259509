"""For all tests: specs are checked, memory is poisoned, nothing is coloured, hypothesis repeats.

Compiled kernels are kept in a folder of the session, which its worker processes share; plans are
not, so that a test may change what they depend on.
"""

import os
import sys
from tempfile import TemporaryDirectory

# Before anything of the package is imported: settings read the environment once.
os.environ.setdefault("SPEC", "1")
os.environ.setdefault("POISON", "1")
os.environ.setdefault("NO_COLOR", "1")
os.environ.setdefault("CACHELEVEL", "1")
if "GLASSGRAD_CACHE" not in os.environ:
    CACHE = TemporaryDirectory(prefix="glassgrad-tests-")
    os.environ["GLASSGRAD_CACHE"] = CACHE.name

import pytest
from hypothesis import HealthCheck, settings

# Tests import these; pytest would keep a module half-imported where one of its imports skips.
collect_ignore = ["support"]

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.register_profile("random", parent=settings.get_profile("repeatable"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(autouse=True)
def nothing_was_recorded_before() -> None:
    """What a test records does not depend on the tests before it: forget what composites, scalar
    arguments, carried state and lifted numbers learned of their program.
    """
    for module, name in (
        ("tensor.lazy.composite", "COMPOSITES"),
        ("tensor.memo.scalar_arguments", "OPERATOR_SITES"),
        ("tensor.lazy.carried_state", "CARRIED_LINES"),
        ("tensor.lazy.carried_state", "GROWTH_BY_LINE"),
        ("engine.plan.lifting", "HISTORIES"),
    ):  # fmt: skip
        found = sys.modules.get(f"glassgrad.{module}")
        if found is not None:
            getattr(found, name).clear()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the texts in tests/golden anew"
    )
