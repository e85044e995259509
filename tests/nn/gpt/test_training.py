from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from glassgrad.base.errors import FormatError, GradientError
from glassgrad.nn.gpt import Config
from glassgrad.nn.gpt.corpus import prepare
from glassgrad.nn.gpt.load import load
from glassgrad.nn.gpt.training import Training, TrainingOptions
from glassgrad.nn.state import get_state_dict

TEXT = "".join(f"def f{i % 7}(x):\n    return x + {i % 5}\n\n" for i in range(400))
OPTIONS = TrainingOptions(steps=12, batch=4, warmup=3)


def begun(folder: Path) -> Training:
    tokenizer = prepare(folder, TEXT, 280)
    config = Config(vocab_size=tokenizer.vocab_size, context=16, layers=1, heads=2, width=16)
    return Training.begin(folder, config, OPTIONS)


def test_losses_fall_and_the_plan_is_kept(tmp_path: Path) -> None:
    training = begun(tmp_path)
    before = training.test()
    assert before is not None
    steps = list(training.steps())
    assert [step.number for step in steps] == list(range(1, 13))
    assert steps[-1].done == 1.0
    assert steps[-1].loss < steps[0].loss
    after = training.test()
    assert after is not None
    assert after < before


def test_a_run_that_stops_goes_on_bit_for_bit(tmp_path: Path) -> None:
    whole = [step.loss for step in begun(tmp_path / "a").steps()]
    first = begun(tmp_path / "b")
    part = [step.loss for step in islice(first.steps(), 5)]
    first.save()
    again = Training.resume(tmp_path / "b")
    assert again.number == 5
    rest = [step.loss for step in again.steps()]
    assert part + rest == whole


def test_a_saved_model_is_loaded_with_its_tokenizer(tmp_path: Path) -> None:
    training = begun(tmp_path)
    list(islice(training.steps(), 3))
    training.save()
    found = load(tmp_path)
    assert found.model.config == training.config
    for name, tensor in get_state_dict(found.model).items():
        assert np.array_equal(tensor.numpy(), get_state_dict(training.model)[name].numpy())
    assert found.tokenizer.decode(found.tokenizer.encode("def f1")) == "def f1"


def test_a_short_text_is_learned_from_and_not_tested(tmp_path: Path) -> None:
    tokenizer = prepare(tmp_path, TEXT[:300], 280)
    config = Config(vocab_size=tokenizer.vocab_size, context=16, layers=1, heads=2, width=16)
    training = Training.begin(tmp_path, config, OPTIONS)
    assert len(list(training.steps())) == 12
    assert training.test() is None


def test_a_run_by_the_clock_ends() -> None:
    plan = TrainingOptions(seconds=10.0, warmup=2)
    assert plan.done(1000, 5.0) == 0.5
    assert plan.done(1, 11.0) == 1.0


def test_the_learning_rate_rises_and_falls() -> None:
    factors = [OPTIONS.factor(step, 0.0) for step in range(13)]
    assert factors[:3] == [0.25, 0.5, 0.75]
    assert factors[3:] == sorted(factors[3:], reverse=True)
    assert factors[-1] == pytest.approx(0.1)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="is not a training folder"):
        Training.resume(tmp_path)


def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path) -> None:
    tokenizer = prepare(tmp_path, TEXT[:300], 280)
    config = Config(vocab_size=tokenizer.vocab_size, context=16, layers=1, heads=2, width=16)
    training = Training.begin(tmp_path, config, TrainingOptions(steps=20, batch=4, rate=1e30))
    with pytest.raises(GradientError, match=r"the loss of step \d is nan"):
        list(training.steps())
    assert training.number < 10


def test_steps_do_not_compare_the_tokens_of_a_large_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches are arguments of the captured step; the file behind the loader is megabytes."""
    monkeypatch.setattr("glassgrad.tensor.jit.guards.reach.MAX_BYTES", 64)
    assert len(list(begun(tmp_path).steps())) == OPTIONS.steps
