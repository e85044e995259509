"""The pool's code is accepted by LLVM for every way to sleep and every processor."""

import llvmlite.binding
import pytest

from glassgrad.devices.cpu.pool_code import FUTEX_CALLS, SYMBOLS, pool_text


@pytest.mark.parametrize("machine", [*FUTEX_CALLS, "sparc"])
@pytest.mark.parametrize("has_futex", [True, False])
def test_the_code_is_well_formed(machine: str, has_futex: bool) -> None:
    if has_futex and machine not in FUTEX_CALLS:
        pytest.skip("no futex there")
    module = llvmlite.binding.parse_assembly(pool_text(machine, has_futex))
    module.verify()
    assert set(SYMBOLS) <= {function.name for function in module.functions}
    assert ("syscall" in str(module)) == has_futex
