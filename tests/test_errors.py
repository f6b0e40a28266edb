"""How errors are worded, and which names are offered."""

import numpy as np
import pytest

from jedax.errors import JedaxError, check_choice, check_whole, fail, nearest, unknown

KNOWN = ("sep-cma-es", "lm-ma-es", "maze-a", "maze-b")


def test_an_error_is_a_value_error():
    assert issubclass(JedaxError, ValueError)


class TestFail:
    def test_one_sentence_with_all_four_parts(self):
        error = fail("step_size", expected="a number above 0", received=-1.5, remedy="give one such as 0.05")
        assert isinstance(error, JedaxError)
        assert str(error) == "step_size: expected a number above 0, got -1.5; give one such as 0.05."

    @pytest.mark.parametrize(
        ("length", "shown"), [(120, "x" * 120), (121, "x" * 117 + "..."), (9999, "x" * 117 + "...")]
    )
    def test_long_values_are_cut(self, length, shown):
        assert str(fail("a", expected="b", received="x" * length, remedy="c")) == f"a: expected b, got {shown}; c."


class TestNearest:
    @pytest.mark.parametrize(
        ("name", "remedy"),
        [
            ("sep-cmaes", "did you mean 'sep-cma-es'?"),
            ("maze-c", "did you mean 'maze-b' or 'maze-a'?"),
            ("CMA", "did you mean 'sep-cma-es'?"),
            ("MAZE-A", "did you mean 'maze-a' or 'maze-b'?"),
            ("es", "choose one of lm-ma-es, maze-a, maze-b, sep-cma-es."),
            ("zzz", "choose one of lm-ma-es, maze-a, maze-b, sep-cma-es."),
            ("", "choose one of lm-ma-es, maze-a, maze-b, sep-cma-es."),
        ],
    )
    def test_remedies(self, name, remedy):
        assert nearest(name, KNOWN) == remedy

    def test_at_most_three(self):
        assert nearest("maze-x", [f"maze-{i}" for i in range(9)]).count(" or ") == 2

    def test_any_iterable(self):
        assert nearest("maze-a", (name for name in KNOWN)).startswith("did you mean 'maze-a'")


class TestUnknown:
    def test_near(self):
        error = unknown("task", "maze_a", iter(KNOWN))
        assert isinstance(error, JedaxError)
        assert str(error) == "task: unknown name 'maze_a'; did you mean 'maze-a' or 'maze-b'?"

    def test_far(self):
        assert str(unknown("task", "zzz", ["b", "a"])) == "task: unknown name 'zzz'; choose one of a, b."


class TestCheckChoice:
    def test_known(self):
        assert check_choice("task", "maze-a", KNOWN) == "maze-a"
        assert check_choice("task", "maze-a", iter(KNOWN)) == "maze-a"

    def test_unknown(self):
        with pytest.raises(JedaxError, match=r"^es: unknown name 'lmmaes'; did you mean 'lm-ma-es'\?$"):
            check_choice("es", "lmmaes", iter(KNOWN))


class TestCheckWhole:
    @pytest.mark.parametrize("value", [1000, 1e3, np.int16(1000), np.float32(1000), np.float64(1000)])
    def test_whole(self, value):
        found = check_whole("evaluations", value, 1, 2000)
        assert (type(found), found) == (int, 1000)

    @pytest.mark.parametrize(
        "value", [0, 2001, 2001.0, 10**400, 1.5, np.nan, np.inf, True, np.True_, "1000", None, 1000j, np.array([1000])]
    )
    def test_not_whole(self, value):
        with pytest.raises(JedaxError, match=r"^evaluations: expected a whole number from 1 to 2,000, got "):
            check_whole("evaluations", value, 1, 2000)
