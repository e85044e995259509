from __future__ import annotations

import numpy as np
import pytest
from support.references.gpt import TINY, logits_of, tiny

from glassgrad import Context, Tensor, TinyJit
from glassgrad.base.errors import ShapeError
from glassgrad.nn.gpt import GPT, Config
from glassgrad.nn.optim import AdamW
from glassgrad.nn.state import get_parameters, get_state_dict


@pytest.mark.parametrize("name", TINY)
def test_logits_are_those_of_another_derivation(name: str) -> None:
    model = tiny(name)
    tokens = [3, 1, 4, 1, 5, 9, 2, 6]
    found = model(Tensor([tokens, tokens[::-1]])).numpy()
    np.testing.assert_allclose(found[0], logits_of(model, tokens), rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(found[1], logits_of(model, tokens[::-1]), rtol=2e-4, atol=2e-4)


def test_a_token_does_not_see_those_behind_it() -> None:
    model = tiny("llama")
    one, two = (model(Tensor([tokens])).numpy() for tokens in ([1, 2, 3, 4], [1, 2, 9, 9]))
    assert np.array_equal(one[0, :2], two[0, :2])
    assert not np.allclose(one[0, 2:], two[0, 2:])


def test_a_tiny_gpt_learns_a_sentence_by_heart() -> None:
    sentence = [b % 50 for b in b"the quick brown fox jumps over the lazy dog"][:40]
    Tensor.manual_seed(1)
    model = GPT(Config(vocab_size=50, context=40, layers=2, heads=2, width=32))
    optimizer = AdamW(get_parameters(model), lr=0.01)
    x, y = Tensor([sentence[:-1]]), Tensor([sentence[1:]])

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = model.loss(x, y)
        loss.backward()
        return loss.realize(*optimizer.schedule_step())

    with Context(TRAINING=1):
        losses = [step().item() for _ in range(120)]
    assert losses[0] > 3.5
    assert losses[-1] < 0.05
    assert model(x).argmax(-1).tolist()[0] == sentence[1:]


def test_an_untrained_model_finds_all_tokens_about_equally_likely() -> None:
    Tensor.manual_seed(0)
    model = GPT(Config.named("nano", layers=1))
    tokens = Tensor.arange(64).reshape(2, 32)
    assert abs(model.loss(tokens, tokens + 64).item() - np.log(1024)) < 0.5


def test_gpt2_has_124_million_parameters() -> None:
    sizes = {name: t.numel() for name, t in get_state_dict(GPT(Config.named("gpt2"))).items()}
    assert sum(sizes.values()) == 124_439_808


def test_too_many_tokens_are_refused() -> None:
    with pytest.raises(ShapeError, match="at most 40"):
        tiny("gpt2")(Tensor.zeros(1, 41, dtype="int32"))
