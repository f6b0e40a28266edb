"""Settings in general: what is refused, in which words, and what `replace` keeps."""

from typing import Annotated, Literal, Self

import pytest
from pydantic import Field, ValidationError, model_validator

from jedax.errors import JedaxError, fail
from jedax.settings import Config, Reference, resolve


class Example(Config):
    count: int = Field(3, ge=1)
    mode: Literal["fast", "exact"] = "fast"
    weight: Literal["auto"] | Annotated[float, Field(ge=0, le=1)] = "auto"
    points: tuple[tuple[float, float], ...] = ()
    place: str
    rule: Reference = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.place == "nowhere":
            raise fail("place", expected="a place", received=self.place, remedy="name one")
        return self


def test_values_and_defaults():
    example = Example.build({"place": "here", "points": [[1, 2], [3, 4]]})
    assert (example.count, example.mode, example.weight) == (3, "fast", "auto")
    assert example.points == ((1.0, 2.0), (3.0, 4.0))
    assert example == Example(place="here", points=((1, 2), (3, 4)))
    assert hash(example) == hash(Example(place="here", points=((1, 2), (3, 4))))


def test_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        Example(place="here").count = 4


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"wieght": 4}, "parameter: unknown name 'wieght'; did you mean 'weight'?"),
        (
            {"zzzz": 4},
            "parameter: unknown name 'zzzz'; choose one of count, mode, place, points, rule, weight.",
        ),
        (
            {"count": 0},
            "count: expected greater than or equal to 1, got 0; change it, or leave it out to get the default.",
        ),
        (
            {"mode": "fsat"},
            "mode: expected 'fast' or 'exact', got 'fsat'; change it, or leave it out to get the default.",
        ),
        (
            {"weight": 2},
            "weight: expected 'auto' or less than or equal to 1, got 2; change it, or leave it out to get the default.",
        ),
        (
            {"points": [[1, 2], [3, None]]},
            "points[1][1]: expected a valid number, got None; change it, or leave it out to get the default.",
        ),
        ({"points": [[1]]}, "points[0]: expected 2 values, got 1; give all of them."),
        ({"place": "nowhere"}, "place: expected a place, got nowhere; name one."),
        ({"place": 5}, "place: expected a valid string, got 5; change it."),
    ],
)
@pytest.mark.parametrize("where", ["", "my.yaml"])
def test_messages(values, message, where):
    with pytest.raises(JedaxError) as caught:
        Example.build({"place": "here"} | values, where=where)
    assert str(caught.value) == (f"{where}: " if where else "") + message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_values_that_cannot_be_hashed():
    class Table(Config):
        weights: dict[str, float] = {}

    with pytest.raises(JedaxError, match=r"^weights: expected a value that can be hashed, .*, got a dict; declare"):
        Table.build({"weights": {"a": 1.0}})


def test_missing():
    with pytest.raises(JedaxError, match=r"^place: expected a value, got none; give it\.$"):
        Example.build({})


class TestReplace:
    def test_changes_only_what_is_named(self):
        one = Example(place="here", count=5)
        other = one.replace(mode="exact")
        assert other == Example(place="here", count=5, mode="exact")
        assert one.mode == "fast"
        assert one.replace() == one

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"count": -1}, "^count: expected"),
            ({"cont": 1}, "unknown name 'cont'"),
            ({"place": "nowhere"}, "^place: "),
        ],
    )
    def test_is_checked_like_the_original(self, changes, message):
        with pytest.raises(JedaxError, match=message):
            Example(place="here").replace(**changes)


class Rule:
    """A class of a user's."""


RULE = Rule()


class TestReference:
    @pytest.mark.parametrize(
        ("value", "name"),
        [
            (None, None),
            ("imp", "imp"),
            ("mine:Rule", "mine:Rule"),
            (Rule, f"{__name__}:Rule"),
            (RULE, f"{__name__}:RULE"),
            (
                TestReplace.test_is_checked_like_the_original,
                f"{__name__}:TestReplace.test_is_checked_like_the_original",
            ),
            (Rule(), "custom:Rule"),
            (lambda: None, "custom:TestReference.<lambda>"),
        ],
    )
    def test_files_keep_the_name(self, value, name):
        example = Example(place="here", rule=value)
        assert example.rule is value
        assert example.model_dump(mode="json")["rule"] == name

    def test_resolve(self):
        assert resolve("rule", f"{__name__}:RULE") is resolve("rule", RULE) is RULE
        assert resolve("rule", None) is None
        with pytest.raises(JedaxError, match=r"^rule: expected an object that can be imported .*, got custom:Rule"):
            resolve("rule", "custom:Rule")
        with pytest.raises(JedaxError, match=r"^rule: expected 'Nothing' in .*test_settings, got none"):
            resolve("rule", f"{__name__}:Nothing")
