from __future__ import annotations

import numpy as np
import pytest
from support.references.gpt import TINY, logits_of, tiny

from glassgrad.base.errors import ShapeError
from glassgrad.base.events import StageEntered, listen
from glassgrad.nn.gpt import GPT, Config, Decoder
from glassgrad.nn.gpt.decoder import LARGE, SMALL

TEXT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9]
TEXT = [*TEXT, 5, 0, 2, 8, 8, 4, 1, 9, 7]


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("prompt", [1, 7, SMALL, SMALL + 3])
def test_logits_with_memory_are_those_without(name: str, prompt: int) -> None:
    model = tiny(name)
    wanted = logits_of(model, TEXT)
    decoder = Decoder(model)
    found = [decoder.read([TEXT[:prompt]])[0]]
    found += [decoder.step([token])[0] for token in TEXT[prompt:]]
    np.testing.assert_allclose(found, wanted[prompt - 1 :], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("count", [2 * SMALL + 1, LARGE, LARGE + 5, LARGE + 2 * SMALL + 9])
def test_long_prompts_are_read_in_blocks_of_two_sizes(count: int) -> None:
    model = GPT(Config(vocab_size=50, context=2 * LARGE, layers=1, heads=2, width=16))
    text = [(7 * number + number // 3) % 50 for number in range(count + 2)]
    wanted = logits_of(model, text)
    decoder = Decoder(model)
    found = [decoder.read([text[:count]])[0], *(decoder.step([t])[0] for t in text[count:])]
    np.testing.assert_allclose(found, wanted[count - 1 :], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_prompts_of_several_lengths_do_not_disturb_each_other(name: str) -> None:
    model = tiny(name)
    rows = [TEXT[:9], TEXT[4:6], TEXT[7:12]]
    decoder = Decoder(model, batch=3)
    found = [decoder.read(rows)]
    for token in (8, 0, 3):
        rows = [[*row, token] for row in rows]
        found.append(decoder.step([token] * 3))
    for number, row in enumerate(rows):
        wanted = logits_of(model, row)[-4:]
        np.testing.assert_allclose([f[number] for f in found], wanted, rtol=1e-3, atol=1e-3)


def test_later_tokens_and_other_prompts_enter_no_stage() -> None:
    decoder = Decoder(tiny("gpt2"))
    for _ in range(2):
        decoder.read([TEXT[:5]])
        decoder.step([1])
    stages = []
    with listen(lambda event: isinstance(event, StageEntered) and stages.append(event)):
        decoder.read([TEXT[:9]])
        for token in TEXT[9:]:
            decoder.step([token])
    assert stages == []


def test_a_second_prompt_sees_nothing_of_the_first() -> None:
    model = tiny("llama")
    decoder = Decoder(model)
    decoder.read([TEXT])
    found = decoder.read([TEXT[3:6]])[0]
    np.testing.assert_allclose(found, logits_of(model, TEXT[3:6])[-1], rtol=1e-3, atol=1e-3)


def test_a_full_context_takes_no_token_more() -> None:
    decoder = Decoder(tiny("gpt2"), context=4)
    decoder.read([[1, 2, 3, 4]])
    with pytest.raises(ShapeError, match="context of 4 tokens is full"):
        decoder.step([5])


@pytest.mark.parametrize("prompts", [[], [[]], [[1], [2]], [[1] * 41]])
def test_prompts_that_do_not_fit_are_refused(prompts: list[list[int]]) -> None:
    with pytest.raises(ShapeError, match="pass 1 prompts of 1 to 40 tokens"):
        Decoder(tiny("gpt2")).read(prompts)
