"""The commands, run as on a command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from glassgrad.base.config import Context
from glassgrad.cli import main
from glassgrad.nn.gpt.training import Step, Training
from glassgrad.tensor.tensor import Tensor

TEXT = "".join(f"def f{i % 7}(x):\n    return x + {i % 5}\n\n" for i in range(500))
SMALL = ["--vocab", "280", "--context", "16", "--layers", "1", "--batch", "4"]


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "glassgrad", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


# Tests in the background ignore Ctrl-C, and their children would, too.
HEARING = """
import signal, sys
from glassgrad.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cli")
    (made / "text.txt").write_text(TEXT)
    return made


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    for word in ("train", "generate", "explain", "viz", "devices", "bench", "cache", "--version"):
        assert word in shown


@pytest.mark.parametrize(
    "command", ["train", "generate", "explain", "viz", "devices", "bench", "cache"]
)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"usage: glassgrad {command}" in capsys.readouterr().out


def test_a_model_is_trained_resumed_and_writes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(folder / "run")
    text = str(folder / "text.txt")
    assert main(["train", text, "--out", out, "--steps", "8", *SMALL]) == 0
    first = capsys.readouterr()
    assert "loss on held-out text" in first.out
    assert "step      8  loss" in first.err
    assert "tok/s  00:00 left" in first.err
    assert main(["train", "--resume", out, "--steps", "10"]) == 0
    assert "from step 8" in capsys.readouterr().out
    written = []
    for _ in range(2):
        assert main(["generate", out, "def f", "--tokens", "12", "--seed", "3"]) == 0
        written.append(capsys.readouterr().out)
    assert written[0] == written[1]
    assert written[0].startswith("def f")
    assert main(["train", text, "--out", out]) == 1
    assert "already contains a model" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="signals are sent")
@pytest.mark.parametrize(
    "signals",
    [[signal.SIGINT], [signal.SIGINT] * 3, [signal.SIGTERM]],
    ids=["Ctrl-C", "pressed thrice", "a machine that shuts down"],
)
def test_a_stopped_run_is_saved_and_tells_how_to_continue(
    folder: Path, tmp_path: Path, signals: list[signal.Signals]
) -> None:
    out = tmp_path / "stopped"
    words = ["train", str(folder / "text.txt"), "--out", str(out), "--steps", "100000", *SMALL]
    process = subprocess.Popen(
        [sys.executable, "-c", HEARING, *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert "loss" in process.stderr.readline()  # training has started
        for one in signals:
            process.send_signal(one)
        shown, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 128 + signals[0]
    assert f"glassgrad train --resume {out}" in shown
    assert "Traceback" not in errors
    assert next(out.glob("step-*.safetensors"))


def test_a_later_interrupt_ends_a_run_at_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def stop(training: Training) -> None:
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("glassgrad.cli.train.INTERRUPT_GRACE", -1.0)
    monkeypatch.setattr(Training, "save", stop)
    words = ["train", str(folder / "text.txt"), "--out", str(tmp_path), "--steps", "1", *SMALL]
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(words) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert "not saved at step 1; no earlier step was saved" in capsys.readouterr().err


def test_ignored_signals_stay_ignored(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def step(training: Training, batch: Tensor) -> Step:
        training.number += 1
        signal.raise_signal(signal.SIGTERM)
        return Step(training.number, 1.0, float(training.number), training.number / 3)

    monkeypatch.setattr(Training, "_step", step)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        words = ["train", str(folder / "text.txt"), "--out", str(tmp_path), "--steps", "3", *SMALL]
        assert main(words) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "stopped" not in capsys.readouterr().out


@pytest.mark.skipif(os.name != "posix", reason="what a process may write is limited")
def test_a_full_disk_is_reported_with_the_file_and_the_saved_steps(
    folder: Path, tmp_path: Path
) -> None:
    limited = (
        "import resource, signal, sys\n"
        "from glassgrad.cli import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    words = ["train", str(folder / "text.txt"), "--out", str(tmp_path), "--steps", "1", *SMALL]
    command = [sys.executable, "-c", limited, *words]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 1
    assert "not saved at step 1; no earlier step was saved" in found.stderr
    assert "step-00000001.safetensors: File too large" in found.stderr
    assert "Traceback" not in found.stderr


def test_characters_that_a_terminal_lacks_are_replaced() -> None:
    found = run("explain", "Tensor([1.0]) + 1", "--only", "graph", PYTHONIOENCODING="ascii")
    assert found.returncode == 0, found.stderr
    assert "?? graph: (1,) of float32" in found.stdout


def test_pipes_get_no_colours() -> None:
    assert "\x1b" not in run("devices").stdout


def test_the_error_for_a_user_without_a_home_names_the_setting() -> None:
    found = run("cache", HOME="~", GLASSGRAD_CACHE="", XDG_CACHE_HOME="")
    assert found.returncode == 1
    assert found.stderr.startswith("glassgrad: this user has no home folder")
    assert "hint: set GLASSGRAD_CACHE" in found.stderr


def test_an_expression_is_explained_down_to_machine_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "Tensor([1.0, -2.0, 3.0]).relu().sum()"]) == 0
    shown = capsys.readouterr().out
    titles = ["graph", "kernel (1 of 1)", "nest: r_", "program", "source: llvm", "machine code"]
    places = [shown.index(f"── {title}") for title in titles]
    assert places == sorted(places)
    assert "Ops.REDUCE" in shown
    assert "define void" in shown
    assert "ret" in shown[places[-1] :]


def test_one_stage_of_an_expression_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Tensor.ones(4) + Tensor.ones(4)", "--only", "graph"]) == 0
    shown = capsys.readouterr().out
    assert "── graph" in shown
    assert "── program" not in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["explain", "foo"], "cannot read the expression: name 'foo'"),
        (["explain", "(("], "cannot read the expression"),
        (["explain", "1 / 0"], "cannot compute the expression: ZeroDivisionError"),
        (["explain", "3"], "is a int, not a Tensor"),
        (["explain", "Tensor([1, 2]) + Tensor([1, 2, 3])"], "cannot add (2,) and (3,)"),
        (["viz", "nowhere.py"], "no such file or folder: nowhere.py"),
        (["generate", "nowhere"], "is neither a folder nor a .gguf file"),
        (["train", "nowhere.txt"], "no such file or folder: nowhere.txt"),
        (["train", "--resume", "nowhere"], "is not a training folder"),
        (["train", "--model", "gpt9", __file__], "unknown model 'gpt9'"),
        (["train", __file__, "--out", __file__], "test_cli.py is a file"),
        (["train", sys.executable], "is not text"),
        (["viz", "Tensor.ones(2) + 1", "--out", "none/page.html"], "no such file or folder: none"),
        (["viz", "--out", ".", "Tensor.ones(2) + 1"], "Is a directory"),
    ],
)
def test_errors_are_one_message_without_a_traceback(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(words) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("glassgrad: ")
    assert message in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    "words",
    [
        ["train", "--steps", "0"],
        ["train", "--minutes", "0"],
        ["train", "--rate", "x"],
        ["train", "--prompt", ""],
        ["generate", "run", "def", "--seed", "-1"],
        ["bench", "--fast"],
        ["viz", "Tensor.ones(2) + 1", "--wide"],
        ["viz", "--port", "65536", "Tensor.ones(2) + 1"],
        [],
    ],
)
def test_invalid_options_show_the_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2


def test_devices_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    shown = capsys.readouterr().out
    assert "* CPU" in shown
    assert "PYTHON" in shown


def test_the_cache_is_shown_pruned_and_cleared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from glassgrad.devices.cpu.object_cache import write_object

    with Context(CACHE=str(tmp_path)):
        for number in range(4):
            write_object(f"ab{number}", b"\x7fELF" + b"x" * 1000)
        assert main(["cache"]) == 0
        assert "compiled kernels       4" in capsys.readouterr().out
        assert main(["cache", "prune", "--most", "0.0025"]) == 0
        assert "removed 2 files" in capsys.readouterr().out
        assert main(["cache", "clear"]) == 0
        assert "removed 2 files" in capsys.readouterr().out


def test_the_cache_lists_kernels_sources_plans_and_machine_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = (
        "from glassgrad import Tensor\n"
        "(Tensor([1.0, 2.0]) + 1).realize()\n(Tensor([1.0, 2.0]) * 3).sum().item()\n"
    )
    environment = {**os.environ, "GLASSGRAD_CACHE": str(tmp_path), "CACHELEVEL": "2"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=120)
    with Context(CACHE=str(tmp_path)):
        assert main(["cache"]) == 0
    shown = dict(line.strip().rsplit("  ", 1)[0].split("  ", 1) for line in
                 capsys.readouterr().out.splitlines()[1:])  # fmt: skip
    counts = {kind: int(count) for kind, count in shown.items()}
    assert counts["their sources"] == counts["plans of graphs"] == 2
    assert counts["compiled kernels"] >= 2  # and the pool's own code
    assert counts["facts, recipes"] >= 1
    assert counts["downloads"] == 0


def test_the_package_runs_as_a_module() -> None:
    found = run("--version")
    assert found.returncode == 0
    assert found.stdout.startswith("glassgrad ")


def test_the_benchmark_prints_its_lines() -> None:
    found = run("bench", "--quick")
    assert found.returncode == 0, found.stderr
    assert "product 256 x 256" in found.stdout
    assert "writing with nano" in found.stdout


def test_a_script_is_run_and_shown_in_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, page = tmp_path / "script.py", tmp_path / "page.html"
    script.write_text(
        "import sys\nfrom glassgrad import Tensor\n"
        "print(sys.argv[1:], (Tensor([1.0, 2.0]) * 4).sum().item())\nraise SystemExit(3)\n"
    )
    assert main(["viz", "--out", str(page), str(script), "--words", "of", "its", "own"]) == 3
    assert "['--words', 'of', 'its', 'own'] 12.0" in capsys.readouterr().out
    assert "(Tensor([1.0, 2.0]) * 4)" in page.read_text()


def test_a_failing_script_is_reported_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, page = tmp_path / "script.py", tmp_path / "page.html"
    script.write_text(
        "from glassgrad import Tensor\n(Tensor([1.0]) + 41).realize()\nraise ValueError('oh')\n"
    )
    assert main(["viz", "--out", str(page), str(script)]) == 1
    assert "ValueError: oh" in capsys.readouterr().err
    assert "+ 41" in page.read_text()


def test_an_expression_is_shown_in_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["viz", "--out", str(page), "Tensor([1.0, -2.0]).relu().sum()"]) == 0
    assert '"graphs":[{' in page.read_text()
    page.unlink()
    assert main(["viz", "Tensor([1.0, -2.0]).relu().sum()", "--out", str(page)]) == 0
    assert '"graphs":[{' in page.read_text()


def test_the_help_of_explain_says_that_it_runs_python(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    assert "evaluated as Python code" in capsys.readouterr().out
