"""`glassgrad train`: trains a model on text, showing the progress."""

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
from glassgrad.cli.arguments import given_options
from glassgrad.nn.gpt.config import Config
from glassgrad.nn.gpt.corpus import TOKENIZER, prepare, read_texts
from glassgrad.nn.gpt.generate import generate
from glassgrad.nn.gpt.sampler import Sampler
from glassgrad.nn.gpt.training import CONFIG, Step, Training, TrainingOptions
from glassgrad.nn.state import get_parameters
from glassgrad.nn.tokenizer import Tokenizer

SAVE_INTERVAL = 60.0  # seconds
LINE_INTERVAL = 5.0  # seconds between lines of progress without a terminal
SAMPLE_TOKENS = 160  # of the text that is printed at the end
WARM_UP_STEPS = 2  # in which kernels are compiled and captured
INTERRUPT_GRACE = 1.0  # seconds after an interrupt in which further ones are ignored
# Ctrl-C, shutdown, a closed terminal.
STOP_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def run(options: Namespace) -> int:
    training = _resume(options) if options.resume else _new_training(options)
    folder = training.folder
    count = sum(param.numel() for param in get_parameters(training.model))
    print(f"training a model of {si(count)} parameters {_length(training)}; Ctrl-C saves and stops")
    try:
        with _interrupts() as interrupts:
            shown = _train(training, interrupts)
            training.save()
    except (KeyboardInterrupt, OSError):
        print(f"\nnot saved at step {training.number}; {_resume_hint(training)}", file=sys.stderr)
        raise
    shown.close()
    if interrupts:
        print(f"\nstopped and saved at step {training.number}; {_resume_hint(training)}")
        return 128 + interrupts[0]
    loss = training.test()
    if loss is not None:
        print(f"loss on held-out text: {loss:.3f}")
    print(f"saved; generate more text with: glassgrad generate {folder} {options.prompt!r}\n")
    tokenizer = Tokenizer.load(folder / TOKENIZER)
    print(options.prompt, end="")
    sampler = Sampler(0.7, seed=training.options.seed)
    for piece in generate(training.model, tokenizer, options.prompt, SAMPLE_TOKENS, sampler):
        print(piece, end="", flush=True)
    print()
    return 0


def _new_training(options: Namespace) -> Training:
    folder: Path = options.out
    if (folder / CONFIG).exists() and next(folder.glob("step-*"), None):
        raise SettingError(
            f"{folder} already contains a model",
            hint=f"continue it with --resume {folder}, or choose another folder with --out",
        )
    # Report a wrong name or size before the text is read.
    config = Config.named(
        options.model, vocab_size=options.vocab, **given_options(options, "context", "layers")
    )
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"{folder} is a file", hint="--out takes a folder")
    start = perf_counter()
    text = read_texts(options.text, options.files)
    folder.mkdir(parents=True, exist_ok=True)
    _check_writable(folder, hint="--out names another folder")
    size = si(len(text)) if len(text) >= 1000 else len(text)
    print(
        f"{size} characters of text; training a tokenizer of {options.vocab} tokens …", flush=True
    )
    tokenizer = prepare(folder, text, options.vocab)
    print(f"the tokenizer is ready ({perf_counter() - start:.1f} s)")
    run_options = TrainingOptions(
        seconds=60 * (options.minutes or 0.0),
        batch=options.batch,
        rate=options.rate,
        seed=options.seed,
        **given_options(options, "steps"),
    )
    return Training.begin(folder, replace(config, vocab_size=tokenizer.vocab_size), run_options)


def _check_writable(folder: Path, hint: str) -> None:
    """Fail before the training instead of when saving."""
    if not os.access(folder, os.W_OK):
        raise SettingError(f"{folder} is not writable", hint=hint)


def _resume(options: Namespace) -> Training:
    changes = given_options(options, "steps")
    if options.minutes is not None:
        changes["seconds"] = 60 * options.minutes
    training = Training.resume(options.resume, **changes)
    _check_writable(options.resume, hint="copy it to another folder, and resume that")
    print(f"continuing {options.resume} from step {training.number}")
    return training


def _length(training: Training) -> str:
    run_options = training.options
    return (
        f"for {run_options.seconds / 60:.1f} minutes"
        if run_options.seconds
        else f"for {run_options.steps} steps"
    )


def _resume_hint(training: Training) -> str:
    """How to continue after the newest saved step."""
    newest = training.saved.newest()
    if newest is None:
        return "no earlier step was saved"
    return f"continue from {newest.name} with:\n    glassgrad train --resume {training.folder}"


def _train(training: Training, interrupts: list[int]) -> Progress:
    """Train to the end of the run, or to the end of the step in which the user interrupts."""
    saved = perf_counter()
    shown = Progress(training.options.batch * training.config.context)
    with closing(training.steps()) as steps:
        for step in steps:
            if interrupts:  # the terminal may be gone: save before anything is shown
                break
            shown.step(step)
            if perf_counter() - saved > SAVE_INTERVAL:
                training.save()
                saved = perf_counter()
    return shown


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The signals received so far that ask to stop.

    After the first, the step is finished and the model saved. Further ones are ignored for a
    moment, as people press Ctrl-C twice; later ones stop immediately.
    """
    found: list[int] = []
    since = 0.0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal since
        if found and perf_counter() - since > INTERRUPT_GRACE:
            raise KeyboardInterrupt
        if not found:
            found.append(number)
            since = perf_counter()

    # Background jobs of a shell, and `nohup`, ignore some of them.
    names = [name for name in STOP_SIGNALS if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]
    before = {one: signal.getsignal(one) for one in numbers}
    handled = [one for one in numbers if before[one] is not signal.SIG_IGN]
    for one in handled:
        signal.signal(one, note)
    try:
        yield found
    finally:
        for one in handled:
            signal.signal(one, before[one])


class Progress:
    """A progress bar with loss, speed and time left; lines of text without a terminal."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens  # per step
        self.is_terminal = sys.stderr.isatty()
        self.bar: tqdm[None] = tqdm(
            unit="tok", unit_scale=True, total=0, rate=10, disable=not self.is_terminal
        )
        self.loss = 0.0
        self.steps = 0
        self.slow: Step | None = None  # the last step of the warm-up
        self.written = perf_counter() - LINE_INTERVAL + 1  # print the first line early

    def step(self, step: Step) -> None:
        self.steps += 1
        if self.steps == 1:  # the bar includes earlier runs
            self.bar.start = perf_counter() - step.seconds
        # A running mean is smoother than the last batch; it starts as the mean of all.
        share = max(1 / self.steps, 0.05)
        self.loss += (step.loss - self.loss) * share
        self.bar.total = int(step.number * self.tokens / max(step.done, 1e-9))
        self.bar.n = (step.number - 1) * self.tokens
        self.bar.set_description(f"loss {self.loss:.3f}")
        self.bar.update(self.tokens)
        self.slow = step if self.steps <= WARM_UP_STEPS else self.slow
        is_due = perf_counter() - self.written > LINE_INTERVAL and self.steps > WARM_UP_STEPS
        if not self.is_terminal and (is_due or step.done >= 1):
            self.written = perf_counter()
            print(self.line(step), file=sys.stderr, flush=True)

    def line(self, step: Step) -> str:
        """The line that is printed without a terminal."""
        text = f"step {step.number:6}  loss {self.loss:.3f}"
        if self.slow is None or self.slow is step:
            return text
        seconds = step.seconds - self.slow.seconds
        speed = (step.number - self.slow.number) * self.tokens / seconds
        left = clock(seconds / (step.done - self.slow.done) * (1 - step.done))
        return f"{text}  {si(speed)} tok/s  {left} left"

    def close(self) -> None:
        if self.steps:
            self.bar.update(close=True)
