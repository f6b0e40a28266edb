"""YAML of others: plain values, and limits that keep a small file from taking the machine."""

import pytest

import jedax
from jedax.yaml_text import read_yaml


def test_values():
    assert read_yaml("a: [1, 2.5, yes]\nb: {c: text}\n", "file") == {"a": [1, 2.5, True], "b": {"c": "text"}}
    assert read_yaml("", "file") is None
    assert read_yaml("a: &one [1, 2]\nb: *one\n", "file") == {"a": [1, 2], "b": [1, 2]}


LAUGHS = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 7)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# " + "x" * 2_000_000, "file: expected at most 2,000,000 characters of YAML, got 2,000,002"),
        (LAUGHS, "file: expected at most 500,000 values, got more, by aliases"),
        ("a: &a [*a]", "file: expected at most 500,000 values"),
        ("[" * 5_000, "file: expected YAML, got values nested too deeply"),
        (f"a: {'9' * 81}", "file: expected YAML, got an invalid value .a whole number of 81 digits"),
        ("a: 2020-13-45", "file: expected YAML, got an invalid value"),
        ('a: "\\ud800"', "file: expected YAML, got an invalid value"),
        ("a: [1", "file: expected YAML, got a syntax error in line 1"),
        ("a: !!python/object/apply:os.getcwd []", "file: expected YAML"),
    ],
    ids=["long", "aliases", "cycle", "deep", "digits", "date", "surrogate", "syntax", "tag"],
)
def test_what_is_refused(text, message):
    with pytest.raises(jedax.JedaxError, match=f"^{message}"):
        read_yaml(text, "file")


def test_what_is_just_within_the_limits():
    assert read_yaml("# " + "x" * 1_999_998, "file") is None
    assert read_yaml(f"a: {'9' * 80}", "file") == {"a": int("9" * 80)}
    assert len(read_yaml(f"[{', '.join(['1'] * 30_000)}]", "file")) == 30_000
