"""Origins: the user's line, captured cheaply and resolved on demand."""

import pickle
import subprocess
import sys
import types

from glassgrad.base import origin as module
from glassgrad.base.errors import GlassgradError
from glassgrad.base.origin import IS_USER_CODE, PACKAGE, Origin, here


def line_of(function):
    return function.__code__.co_firstlineno


def test_here_is_the_line_that_calls():
    def outer():
        return here()

    found = outer()
    assert found.file == __file__
    assert found.line == line_of(outer) + 1
    assert found.text == "return here()"


def test_frames_of_the_package_are_skipped():
    code = compile("def call(f):\n    return f()\n", PACKAGE + "inside.py", "exec")
    inside = types.ModuleType("inside")
    exec(code, inside.__dict__)
    found = inside.call(here)
    assert found.file == __file__
    assert found.text == "found = inside.call(here)"


def test_a_call_over_several_lines_is_where_it_happens():
    found = [
        1,
        here(),
    ][1]
    assert found.text == "here(),"


def test_without_a_user_there_is_no_origin():
    code = compile("found = here()", PACKAGE + "inside.py", "exec")
    frames = {"here": lambda: _walk_from_nowhere()}
    exec(code, frames)
    assert frames["found"] is None


def _walk_from_nowhere():
    real, module.sys = module.sys, types.SimpleNamespace(_getframe=lambda depth: None)
    try:
        return here()
    finally:
        module.sys = real


def test_the_command_line_and_the_prompt_have_origins():
    program = "from glassgrad.base.origin import here\nprint(here())\n"
    command = [sys.executable, "-c", program]
    line = subprocess.run(command, capture_output=True, text=True, check=True)
    assert line.stdout in ("<string>:2\n", "<string>:2   print(here())\n"), "3.13 keeps the text"
    prompt = subprocess.run(
        [sys.executable], input=program, capture_output=True, text=True, check=True
    )
    assert prompt.stdout == "<stdin>:2\n"


def test_an_origin_prints_file_line_and_text():
    assert str(Origin("train.py", 17, "loss = f(x)")) == "train.py:17   loss = f(x)"
    assert str(Origin("<stdin>", 1)) == "<stdin>:1"


def test_an_origin_survives_pickling():
    found = here()
    copy = pickle.loads(pickle.dumps(found))
    assert copy == found
    assert hash(copy) == hash(found)
    assert copy.text == found.text


def test_the_table_of_files_is_bounded():
    IS_USER_CODE.update({f"<cell {n}>": True for n in range(10_001)})
    exec(compile("found = here()", "<another cell>", "exec"), {"here": here})
    assert len(IS_USER_CODE) < 10


def test_errors_point_at_the_line():
    def mistake():
        raise GlassgradError("no")

    try:
        mistake()
    except GlassgradError as error:
        assert error.origin.line == line_of(mistake) + 1
