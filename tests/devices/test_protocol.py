"""The batch for devices without a native one calls executables in order."""

from dataclasses import dataclass, field

from glassgrad.devices.protocol import Call, PythonBatch
from glassgrad.ir.stages import Program, Source


@dataclass
class Recorder:
    source: Source
    address: int = 0
    calls: list[tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)

    def __call__(self, pointers: tuple[int, ...], values: tuple[int, ...] = ()) -> None:
        self.calls.append((pointers, values))


def test_calls_run_in_order_with_replaced_arguments() -> None:
    recorder = Recorder(Source("x", "", "python", Program("x", ())))
    batch = PythonBatch([Call(recorder, (1, 2)), Call(recorder, (3,), (4,))])
    batch.run()
    batch.set_pointer(0, 1, 9)
    batch.set_value(1, 0, 7)
    batch.run()
    assert recorder.calls == [((1, 2), ()), ((3,), (4,)), ((1, 9), ()), ((3,), (7,))]
