"""A GPT: a tokenizer, a captured training step, and text generation token by token.

python examples/gpt.py [--quick] [FILE]    the training text; default: the source of glassgrad

`glassgrad train` does the same with progress, checkpoints and files.
"""

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np

import glassgrad
from glassgrad import Context, Tensor, TinyJit
from glassgrad.nn.gpt import GPT, Config, Sampler, generate
from glassgrad.nn.optim import AdamW
from glassgrad.nn.state import get_parameters
from glassgrad.nn.tokenizer import Tokenizer


def read_text(file: str | None) -> str:
    if file is not None:
        return Path(file).read_text()
    sources = sorted(Path(glassgrad.__file__).parent.rglob("*.py"))
    return "\n".join(source.read_text() for source in sources)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    steps, batch = (60, 4) if options.quick else (800, 8)

    text = read_text(options.file)
    tokenizer = Tokenizer.train([text], vocab_size=512)
    tokens = np.array(tokenizer.encode(text), np.int32)
    print(f"{len(text):,} characters, {len(tokens):,} tokens, vocabulary of {tokenizer.vocab_size}")

    Tensor.manual_seed(0)
    config = Config(
        family="llama", vocab_size=512, context=64, layers=2, heads=4, kv_heads=2, width=96,
        hidden=256,
    )  # fmt: skip
    model = GPT(config)
    optimizer = AdamW(get_parameters(model), lr=3e-3)
    print(f"{sum(param.numel() for param in get_parameters(model)):,} parameters")

    @TinyJit
    def step(batch: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model.loss(batch[:, :-1], batch[:, 1:])
        loss.backward()
        return loss.realize(*optimizer.schedule_step())

    rng = np.random.default_rng(0)
    start = perf_counter()
    with Context(TRAINING=1):
        for number in range(1, steps + 1):
            starts = rng.integers(0, len(tokens) - config.context - 1, batch)
            rows = tokens[starts[:, None] + np.arange(config.context + 1)]
            loss = step(Tensor(rows))
            if number % (steps // 5) == 0:
                speed = number * batch * config.context / (perf_counter() - start)
                print(f"step {number:4}  loss {loss.item():.3f}  {speed:,.0f} tokens/s")

    prompt = "def "
    print(prompt, end="")
    for piece in generate(
        model, tokenizer, prompt, 40 if options.quick else 200, Sampler(0.7, seed=1)
    ):
        print(piece, end="", flush=True)
    print()


if __name__ == "__main__":
    main()
