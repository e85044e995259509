"""Text generation: prompts -> continuations, token by token or as pieces of text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from glassgrad.base.errors import ShapeError
from glassgrad.nn.gpt.decoder import Decoder
from glassgrad.nn.gpt.model import GPT
from glassgrad.nn.gpt.sampler import Sampler
from glassgrad.nn.tokenizer.tokenizer import Coder

REPLACEMENT = "\ufffd"  # an incomplete UTF-8 character decodes to this
MAX_CONTEXT_TOKENS = 8  # tokens before a piece that are decoded with it
MAX_CHARACTER_BYTES = 4  # an incomplete character needs no more tokens than this


def generate_ids(
    model: GPT | Decoder,
    prompts: Sequence[Sequence[int]],
    count: int,
    sampler: Sampler | None = None,
) -> Iterator[list[int]]:
    """One token per prompt at a time. When the context is full, its second half is kept."""
    if not len(prompts):
        raise ShapeError("generation needs at least one prompt")
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
        if decoder.position < decoder.context:
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
    """Pieces of text as they are generated, up to `count` tokens or until a token in `stop`."""
    ids = tokenizer.encode(prompt)
    ends = (stop,) if isinstance(stop, int) else stop or ()
    before, waiting = ids[-MAX_CONTEXT_TOKENS:], []
    for (token,) in generate_ids(model, [ids], count, sampler):
        if token in ends:
            break
        waiting.append(token)
        text = _continuation(tokenizer, before, waiting)
        if not text.endswith(REPLACEMENT) or len(waiting) > MAX_CHARACTER_BYTES:
            yield text
            before, waiting = [*before, *waiting][-MAX_CONTEXT_TOKENS:], []
    if waiting:
        yield _continuation(tokenizer, before, waiting)


def _continuation(tokenizer: Coder, before: list[int], ids: list[int]) -> str:
    """The text of tokens after others: SentencePiece decoders strip the first space of a text."""
    start = tokenizer.decode(before)
    whole = tokenizer.decode([*before, *ids])
    return whole[len(start) :] if whole.startswith(start) else tokenizer.decode(ids)
