"""Checkpoints: a training run <-> a folder of files from which it resumes bit for bit.

A checkpoint is one safetensors file: the tensors of every part (model, optimiser, schedule, …), and
in its metadata the step, the state of the random generator and the positions of loaders.
"""

from __future__ import annotations

import json
import re
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from glassgrad.base.errors import FormatError
from glassgrad.nn.files.atomic import PART_PREFIX
from glassgrad.nn.files.safetensors import METADATA, safe_load, safe_load_metadata, safe_save
from glassgrad.nn.state import get_state_dict, load_state_dict
from glassgrad.tensor.extension import GENERATOR
from glassgrad.tensor.tensor import Tensor

NAME = re.compile(r"step-(\d+)\.safetensors")


@runtime_checkable
class Seekable(Protocol):
    """A part whose state is a position and not tensors, such as a Loader."""

    def position(self) -> dict[str, int]:
        """The position, as plain numbers."""

    def seek(self, position: dict[str, int]) -> None:
        """Continue from this position."""


class Checkpoints:
    """The newest `keep` checkpoints of a run, in a folder. Parts are passed by name.

    Files are written atomically, so a run that is killed resumes from the last one:

        saved = Checkpoints("run", model=model, optimizer=optimizer, loader=loader)
        for step in range(saved.resume(), 1000):
            train_step()
            if (step + 1) % 100 == 0:
                saved.save(step + 1)

    >>> import tempfile
    >>> w = Tensor([1.0, 2.0])
    >>> saved = Checkpoints(tempfile.mkdtemp(), model={"w": w})
    >>> saved.resume(), saved.save(3).name
    (0, 'step-00000003.safetensors')
    >>> w = w.assign(w * 0)
    >>> saved.resume(), w.tolist()
    (3, [1.0, 2.0])
    """

    def __init__(self, folder: str | PathLike[str], keep: int = 3, **parts: Any) -> None:
        if keep < 1:
            raise ValueError(f"keep must be at least 1, not {keep}")
        self.folder, self.keep, self.parts = Path(folder), keep, parts
        self._has_resumed = False

    def save(self, step: int, notes: Any = None) -> Path:
        """Write a checkpoint and remove those beyond the newest `keep`.

        `notes` is any JSON value.
        """
        step = _checked_step(step)
        self._check_folder()
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"step-{step:08d}.safetensors"
        metadata = {
            "step": step,
            "random": [GENERATOR.seed, GENERATOR.used],
            "positions": {name: part.position() for name, part in self._seekable().items()},
            "notes": notes,
        }
        safe_save(
            self._index_parts(), path, {key: json.dumps(one) for key, one in metadata.items()}
        )
        self._has_resumed = True
        self._remove(path)
        return path

    def _check_folder(self) -> None:
        """Refuse to replace the checkpoints of another run: one must resume() before it saves."""
        found = self.newest()
        if not self._has_resumed and found is not None:
            raise FormatError(
                f"{self.folder} holds another run's checkpoint, of step {_step(found)}",
                hint="call resume() first, or save in another folder",
            )

    def resume(self, path: str | PathLike[str] | None = None) -> int:
        """Restore every part from the newest checkpoint, or from `path`; returns the step.

        Without a checkpoint it does nothing and returns 0.
        """
        self._has_resumed = True
        found = self.newest() if path is None else Path(path)
        if found is None:
            return 0
        try:
            metadata, saved = _metadata(found), safe_load(found)
        except FormatError as error:
            raise FormatError(error.message, hint=self._hint_for_unreadable(found)) from None
        try:
            load_state_dict(self._index_parts(), saved)
        except FormatError as error:
            hint = "pass the same parts as in the run that saved the checkpoint"
            raise FormatError(error.message, hint=hint) from None
        for name, part in self._seekable().items():
            part.seek(metadata["positions"][name])
        seed, used = metadata["random"]
        GENERATOR.restart(seed)
        GENERATOR.used = used
        return int(metadata["step"])

    def _hint_for_unreadable(self, found: Path) -> str:
        """What to try if a checkpoint cannot be read."""
        others = [path for path in self._files() if path != found]
        if not others:
            return f"remove {found.name} to start from step 0"
        return f"call resume({str(max(others, key=_step))!r}), or remove {found.name}"

    def notes(self, path: str | PathLike[str] | None = None) -> Any:
        """The notes of the newest checkpoint, or of the one at `path`."""
        found = self.newest() if path is None else Path(path)
        return None if found is None else _metadata(found)["notes"]

    def newest(self) -> Path | None:
        """The checkpoint of the latest step."""
        return max(self._files(), key=_step, default=None)

    def _files(self) -> list[Path]:
        return [path for path in self.folder.glob("step-*") if NAME.fullmatch(path.name)]

    def _remove(self, newest: Path) -> None:
        """Remove old checkpoints, later ones if an earlier one was resumed, and leftovers of killed
        runs.
        """
        later = [path for path in self._files() if _step(path) > _step(newest)]
        older = sorted(set(self._files()) - set(later), key=_step)
        for path in (*later, *older[: -self.keep], *self.folder.glob(f"{PART_PREFIX}*")):
            path.unlink(missing_ok=True)

    def _seekable(self) -> dict[str, Seekable]:
        return {name: part for name, part in self.parts.items() if isinstance(part, Seekable)}

    def _index_parts(self) -> dict[str, Tensor]:
        """The tensors of all parts; a tensor with several names, such as a parameter, only once."""
        parts = {name: part for name, part in self.parts.items() if not isinstance(part, Seekable)}
        first: dict[int, str] = {}
        named = get_state_dict(parts)
        for name, tensor in named.items():
            first.setdefault(id(tensor), name)
        return {name: tensor for name, tensor in named.items() if first[id(tensor)] == name}


def _checked_step(step: Any) -> int:
    """The step as an int. File names sort by step, so it must not be negative."""
    if isinstance(step, bool) or not hasattr(step, "__index__") or step.__index__() < 0:
        raise ValueError(f"step must be an int of at least 0, not {step!r}")
    return int(step.__index__())


def _step(path: Path) -> int:
    return int(path.stem.partition("-")[2])


def _metadata(path: Path) -> dict[str, Any]:
    header = safe_load_metadata(path)[2]
    try:
        found = {key: json.loads(text) for key, text in header[METADATA].items()}
        _ = found["step"], found["random"], found["positions"], found["notes"]
    except (KeyError, AttributeError, TypeError, ValueError):
        raise FormatError(f"{path} is not a checkpoint") from None
    return found
