"""prompts -> what a model writes behind them, token by token or as pieces of text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from glassgrad.base.errors import ShapeError
from glassgrad.nn.gpt.decoder import Decoder
from glassgrad.nn.gpt.model import GPT
from glassgrad.nn.gpt.sampler import Sampler
from glassgrad.nn.tokenizer.tokenizer import Coder

BROKEN = "\ufffd"  # what a part of a character looks like
MOST_BEFORE = 8  # tokens before a piece that are decoded with it
LONGEST_CHARACTER = 4  # bytes, so no more tokens than that are waited for


def generate_ids(
    model: GPT | Decoder,
    prompts: Sequence[Sequence[int]],
    count: int,
    sampler: Sampler | None = None,
) -> Iterator[list[int]]:
    """One token per prompt at a time. A full context goes on from its second half."""
    if not len(prompts):
        raise ShapeError("there is no prompt to go on from")
    decoder = model if isinstance(model, Decoder) else Decoder(model, len(prompts))
    sampler = Sampler() if sampler is None else sampler
    read = [list(prompt)[-decoder.context :] for prompt in prompts]
    logits = decoder.read(read)
    for number in range(count):
        tokens = [int(token) for token in sampler(logits)]
        yield tokens
        for row, token in zip(read, tokens, strict=True):
            row.append(token)
        if number + 1 == count:
            return
        if decoder.place < decoder.context:
            logits = decoder.step(tokens)
        else:
            read = [row[-max(decoder.context // 2, 1) :] for row in read]
            logits = decoder.read(read)


def generate(
    model: GPT | Decoder,
    tokenizer: Coder,
    prompt: str,
    count: int = 200,
    sampler: Sampler | None = None,
    stop: int | Collection[int] | None = None,
) -> Iterator[str]:
    """Pieces of text as they come, up to `count` tokens or until one of the tokens `stop`."""
    ids = tokenizer.encode(prompt)
    ends = (stop,) if isinstance(stop, int) else stop or ()
    before, waiting = ids[-MOST_BEFORE:], []
    for (token,) in generate_ids(model, [ids], count, sampler):
        if token in ends:
            break
        waiting.append(token)
        text = _text_behind(tokenizer, before, waiting)
        if not text.endswith(BROKEN) or len(waiting) > LONGEST_CHARACTER:
            yield text
            before, waiting = [*before, *waiting][-MOST_BEFORE:], []
    if waiting:
        yield _text_behind(tokenizer, before, waiting)


def _text_behind(tokenizer: Coder, before: list[int], ids: list[int]) -> str:
    """What tokens mean behind others: decoders of SentencePiece cut the first blank of a text."""
    start = tokenizer.decode(before)
    whole = tokenizer.decode([*before, *ids])
    return whole[len(start) :] if whole.startswith(start) else tokenizer.decode(ids)
