"""Settings: values, the environment, Context."""

import os
import subprocess
import sys
import threading

import pytest

from glassgrad.base.config import DEBUG, DEV, NOOPT, SETTINGS, Context, getenv, table
from glassgrad.base.errors import SettingError


def fresh(code, **environment):
    """What a new process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or done.stderr.strip()


def test_a_setting_behaves_like_its_value():
    with Context(DEBUG=2, DEV="PYTHON"):
        assert DEBUG
        assert DEBUG == 2
        assert DEBUG != 3
        assert 1 < DEBUG <= 2
        assert int(DEBUG) == 2
        assert ["a", "b", "c"][DEBUG] == "c"
        assert str(DEV) == "PYTHON"
        assert f"{DEBUG}" == "2"


def test_context_nests_and_restores():
    before = DEBUG.value
    with Context(DEBUG=5):
        with Context(DEBUG=6, NOOPT=1):
            assert (DEBUG.value, NOOPT.value) == (6, 1)
        assert DEBUG.value == 5
    assert DEBUG.value == before


def test_context_restores_after_an_error():
    before = DEBUG.value
    with pytest.raises(KeyError), Context(DEBUG=7):
        raise KeyError
    assert DEBUG.value == before


def test_one_context_can_be_entered_twice():
    both = Context(DEBUG=3)
    with both, both:
        assert DEBUG == 3
    assert DEBUG != 3


def test_context_decorates_functions():
    @Context(DEBUG=4)
    def level():
        return DEBUG.value

    assert level() == 4
    assert DEBUG != 4


def test_a_decorated_generator_has_the_settings_only_while_it_runs():
    @Context(DEBUG=4)
    def levels():
        got = yield DEBUG.value
        try:
            yield (got, DEBUG.value)
        except KeyError:
            yield ("caught", DEBUG.value)
        return DEBUG.value

    steps = levels()
    assert next(steps) == 4
    assert DEBUG != 4
    assert steps.send("sent") == ("sent", 4)
    assert steps.throw(KeyError()) == ("caught", 4)
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value == 4


def test_threads_do_not_see_each_other():
    seen = []
    with Context(DEBUG=6):
        thread = threading.Thread(target=lambda: seen.append(DEBUG.value))
        thread.start()
        thread.join()
    assert seen == [DEBUG.base]


def test_an_unknown_setting_is_an_error_with_a_hint():
    with pytest.raises(SettingError, match=r"no setting DEBG.*\n.*\n.*did you mean DEBUG"):
        Context(DEBG=1)


def test_a_value_of_the_wrong_type_is_an_error_and_changes_nothing():
    before = NOOPT.value
    with pytest.raises(SettingError, match=r"DEBUG=1\.5"), Context(NOOPT=7, DEBUG=1.5):
        pass
    assert NOOPT.value == before


@pytest.mark.parametrize(
    "text, value", [("3", 3), ("true", 1), ("Off", 0), ("", 0), ("0x10", 16), ("2K", 2048)]
)
def test_the_environment_is_read_at_import(text, value):
    code = "from glassgrad.base.config import DEBUG; print(DEBUG)"
    assert fresh(code, DEBUG=text) == str(value)


def test_a_bad_value_in_the_environment_is_a_clear_error():
    found = fresh("import glassgrad.base.config", DEBUG="loud")
    assert "DEBUG='loud' is not a whole number" in found
    assert "hint: set DEBUG to a number" in found


def test_the_cache_folder_has_a_variable_of_its_own():
    code = "from glassgrad.base.config import CACHE; print(CACHE)"
    assert fresh(code, GLASSGRAD_CACHE="/somewhere") == "/somewhere"


def test_getenv_takes_the_type_of_its_default(monkeypatch):
    monkeypatch.setenv("STEPS", "12")
    assert getenv("STEPS") == 12
    assert getenv("STEPS", "5") == "12"
    assert getenv("STEPS", 0.5) == 12.0
    assert getenv("STEPS", False) is True
    assert getenv("NO_SUCH_VARIABLE", "x") == "x"
    monkeypatch.setenv("STEPS", "many")
    with pytest.raises(SettingError, match="STEPS='many'"):
        getenv("STEPS", 1)
    with pytest.raises(SettingError, match="STEPS='many'"):
        getenv("STEPS", 1.0)


def test_every_setting_is_documented_and_in_the_table():
    for setting in SETTINGS.values():
        assert setting.meaning
        assert setting.variable in table()
