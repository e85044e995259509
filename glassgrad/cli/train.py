"""`glassgrad train`: text -> a model in a folder, with its progress on the screen."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from types import FrameType

from glassgrad.base.errors import SettingError
from glassgrad.base.progress import tqdm
from glassgrad.base.terminal import clock, si
from glassgrad.cli.arguments import wanted
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.corpus import TOKENIZER, gathered, prepare
from glassgrad.nn.gpt.generate import generate
from glassgrad.nn.gpt.sampler import Sampler
from glassgrad.nn.gpt.training import CONFIG, Plan, Step, Training
from glassgrad.nn.state import get_parameters
from glassgrad.nn.tokenizer import Tokenizer

SAVE_EVERY = 60.0  # seconds
LINE_EVERY = 5.0  # seconds, where no bar can be drawn
SAMPLE = 160  # tokens
SLOW = 2  # steps in which kernels are compiled and captured
AT_ONCE = 1.0  # seconds in which several interrupts are one
# Ctrl-C, a machine that shuts down, a terminal that is closed.
STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")


def run(options: Namespace) -> int:
    training = _resumed(options) if options.resume else _begun(options)
    folder = training.folder
    count = sum(param.numel() for param in get_parameters(training.model))
    print(f"a model of {si(count)} parameters learns, {_length(training)}; Ctrl-C saves and stops")
    try:
        with _interrupts() as interrupts:
            shown = _learn(training, interrupts)
            training.save()
    except (KeyboardInterrupt, OSError):
        print(f"\nnot saved at step {training.number}; {_kept(training)}", file=sys.stderr)
        raise
    shown.close()
    if interrupts:
        print(f"\nstopped and saved at step {training.number}; {_kept(training)}")
        return 128 + interrupts[0]
    loss = training.test()
    if loss is not None:
        print(f"loss on text it never saw: {loss:.3f}")
    print(f"saved; let it write more with: glassgrad generate {folder} {options.prompt!r}\n")
    tokenizer = Tokenizer.load(folder / TOKENIZER)
    print(options.prompt, end="")
    sampler = Sampler(0.7, seed=training.plan.seed)
    for piece in generate(training.model, tokenizer, options.prompt, SAMPLE, sampler):
        print(piece, end="", flush=True)
    print()
    return 0


def _begun(options: Namespace) -> Training:
    folder: Path = options.out
    if (folder / CONFIG).exists() and next(folder.glob("step-*"), None):
        raise SettingError(
            f"{folder} holds a model already",
            hint=f"go on with --resume {folder}, or take another folder with --out",
        )
    # A wrong name or size is told before minutes go by.
    config = Config.named(
        options.model, vocab_size=options.vocab, **wanted(options, "context", "layers")
    )
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"{folder} is a file", hint="--out takes a folder")
    start = perf_counter()
    text = gathered(options.text, options.files)
    folder.mkdir(parents=True, exist_ok=True)
    _check_writable(folder, hint="--out names another folder")
    size = si(len(text)) if len(text) >= 1000 else len(text)
    print(f"{size} characters of text; learning {options.vocab} tokens …", flush=True)
    tokenizer = prepare(folder, text, options.vocab)
    print(f"tokens are ready ({perf_counter() - start:.1f} s)")
    plan = Plan(
        seconds=60 * (options.minutes or 0.0),
        batch=options.batch,
        rate=options.rate,
        seed=options.seed,
        **wanted(options, "steps"),
    )
    return Training.begin(folder, replace(config, vocab_size=tokenizer.vocab_size), plan)


def _check_writable(folder: Path, hint: str) -> None:
    """Better now than when there is something to save."""
    if not os.access(folder, os.W_OK):
        raise SettingError(f"{folder} cannot be written to", hint=hint)


def _resumed(options: Namespace) -> Training:
    changes = wanted(options, "steps")
    if options.minutes is not None:
        changes["seconds"] = 60 * options.minutes
    training = Training.resume(options.resume, **changes)
    _check_writable(options.resume, hint="copy it to another folder, and resume that")
    print(f"{options.resume} goes on from step {training.number}")
    return training


def _length(training: Training) -> str:
    plan = training.plan
    return f"for {plan.seconds / 60:.1f} minutes" if plan.seconds else f"for {plan.steps} steps"


def _kept(training: Training) -> str:
    """What there is to go on with."""
    newest = training.saved.newest()
    if newest is None:
        return "nothing was saved before"
    return f"this goes on with {newest.name}:\n    glassgrad train --resume {training.folder}"


def _learn(training: Training, interrupts: list[int]) -> Progress:
    """To the end of the plan, or of the step in which somebody presses Ctrl-C."""
    saved = perf_counter()
    shown = Progress(training.plan.batch * training.config.context)
    with closing(training.steps()) as steps:
        for step in steps:
            if interrupts:  # the terminal may be gone: save before anything is shown
                break
            shown.step(step)
            if perf_counter() - saved > SAVE_EVERY:
                training.save()
                saved = perf_counter()
    return shown


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The signals so far that ask to stop.

    The first waits for the end of a step and for the model to be saved. So do others that come
    with it, as people press Ctrl-C twice; a later one ends everything.
    """
    found: list[int] = []
    since = 0.0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal since
        if found and perf_counter() - since > AT_ONCE:
            raise KeyboardInterrupt
        if not found:
            found.append(number)
            since = perf_counter()

    # A shell that starts something in the background, or `nohup`, has some of them ignored.
    names = [name for name in STOPPING if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]
    before = {one: signal.getsignal(one) for one in numbers}
    heard = [one for one in numbers if before[one] is not signal.SIG_IGN]
    for one in heard:
        signal.signal(one, note)
    try:
        yield found
    finally:
        for one in heard:
            signal.signal(one, before[one])


class Progress:
    """A bar with loss, tokens per second and time left; lines where there is no terminal."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens  # of a step
        self.is_terminal = sys.stderr.isatty()
        self.bar: tqdm[None] = tqdm(
            unit="tok", unit_scale=True, total=0, rate=10, disable=not self.is_terminal
        )
        self.loss = 0.0
        self.steps = 0
        self.slow: Step | None = None  # the last that says nothing about later ones
        self.written = perf_counter() - LINE_EVERY + 1  # the first line comes early

    def step(self, step: Step) -> None:
        self.steps += 1
        if self.steps == 1:  # the bar counts what earlier runs did, too
            self.bar.start = perf_counter() - step.seconds
        # A running mean says more than one batch; it begins with the mean of all.
        share = max(1 / self.steps, 0.05)
        self.loss += (step.loss - self.loss) * share
        self.bar.total = int(step.number * self.tokens / max(step.done, 1e-9))
        self.bar.n = (step.number - 1) * self.tokens
        self.bar.set_description(f"loss {self.loss:.3f}")
        self.bar.update(self.tokens)
        self.slow = step if self.steps <= SLOW else self.slow
        is_due = perf_counter() - self.written > LINE_EVERY and self.steps > SLOW
        if not self.is_terminal and (is_due or step.done >= 1):
            self.written = perf_counter()
            print(self.line(step), file=sys.stderr, flush=True)

    def line(self, step: Step) -> str:
        """What is printed where no bar can be drawn."""
        said = f"step {step.number:6}  loss {self.loss:.3f}"
        if self.slow is None or self.slow is step:
            return said
        seconds = step.seconds - self.slow.seconds
        speed = (step.number - self.slow.number) * self.tokens / seconds
        left = clock(seconds / (step.done - self.slow.done) * (1 - step.done))
        return f"{said}  {si(speed)} tok/s  {left} left"

    def close(self) -> None:
        if self.steps:
            self.bar.update(close=True)
