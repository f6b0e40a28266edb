"""How numbers are written."""

import math

import pytest

from jedax.report.numbers import decimals_for, evaluations_text, fitness_text, p_text, share_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (64, "64"),
        (999.6, "1 k"),
        (1500, "1.5 k"),
        (250_000, "250 k"),
        (999_999, "1 M"),
        (12_345_678, "12.3 M"),
    ],
)
def test_evaluations(value, text):
    assert evaluations_text(value) == text


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([-281, -117], 1),
        ([3186], 0),
        ([99_999, 1], 0),
        ([0.0123, 0.5], 4),
        ([1e-9], 6),
        ([0.0], 0),
        ([-math.inf], 0),
        ([], 0),
    ],
)
def test_decimals_show_four_digits_of_the_largest(values, decimals):
    assert decimals_for(values) == decimals


def test_fitness():
    assert [fitness_text(v, 1) for v in (-117.25, -0.04, 0.0, -math.inf)] == ["-117.2", "0.0", "0.0", "-inf"]


def test_p_values_and_shares():
    assert [p_text(p) for p in (0.0009, 0.001, 0.05, 0.0503, 1)] == ["<0.001", "0.001", "0.050", "0.050", "1.000"]
    assert [share_text(s) for s in (0, 0.345, 1, math.nan)] == ["0%", "34%", "100%", "-"]
