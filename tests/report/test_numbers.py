"""How numbers are written, and scales that a few very low values cannot flatten."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest

from jedax.report.numbers import (
    agrees,
    colour_limits,
    cut_axis,
    decimals_for,
    evaluations_text,
    fitness_text,
    lowest_shown,
    p_text,
    share_text,
)

CASES = [
    ([-1e6, -100, -50, 0], -100),
    ([-1e6, -1e6, -1e6, -100, -50, -20, 0], -100),  # three of seven
    ([-1e6, -1e6, -1e6, -50, -20, 0, -1e6], -1e6),  # more than half of all: no outliers
    ([-1e6, -1e3, -100, -90, -50, -40, -10, 0], -1e3),  # a gap of 900 over a range of 100 is none
    ([-100, -50, 0], -100),
    ([-100, -50, 0, 1e6, 2e6], -100),  # the best are never cut off, nor what they dwarf
    ([-1e6, 0, 0, 0], -1e6),  # two values, two colours
    ([np.nan, -np.inf, -1e6, -100, -50, 0], -100),
    ([3.0], 3),
]


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
    assert [fitness_text(v, 1) for v in (-117.25, -0.0, 0.0, -math.inf)] == ["-117.2", "0.0", "0.0", "-inf"]
    assert [fitness_text(v, 1) for v in (-0.04, 2e-13, 0.06)] == ["-0.04", "2e-13", "0.1"]
    assert [fitness_text(v, 0) for v in (-9999999999, -1.83821290543565e14, 1e30)] == [
        "-9999999999", "-1.838213e+14", "1e+30"
    ]  # fmt: skip


def test_decimals_tell_values_apart():
    assert decimals_for([100000.20, 100000.42]) == 1
    assert decimals_for([100000.42, 100000.42]) == 0
    assert decimals_for([100000.42, 100000.42 + 1e-9]) == 2  # eight digits at most


def test_where_two_values_of_fitness_agree():
    """Within a thousandth of the fitness, or of the range of all."""
    assert agrees(-1000.9, -1000, [-1000, -1000])
    assert not agrees(-1002, -1000, [-1000, -1000])
    assert agrees(0.0009, 0, [-1, 0, -np.inf])
    assert not agrees(-0.009, -0.008, [-0.01, -0.008])


def test_p_values_and_shares():
    assert [p_text(p) for p in (0.0009, 0.001, 0.05, 0.0503, 1)] == ["<0.001", "0.001", "0.050", "0.050", "1.000"]
    assert [share_text(s) for s in (0, 0.345, 0.996, 1, math.nan)] == ["0%", "34%", ">99%", "100%", "-"]


@pytest.mark.parametrize(("values", "lowest"), CASES)
def test_where_a_scale_begins(values, lowest):
    assert lowest_shown(values) == lowest
    assert lowest_shown(values[::-1]) == lowest


def test_colours_begin_above_failed_solutions():
    spread = list(range(-90, 1, 10))
    assert colour_limits([-900, *spread], log=False) == (-90, 0)  # a gap of nine times the range
    assert colour_limits([-900, -700, -500, *spread], log=False) == (-90, 0)  # and without a gap between the last
    assert colour_limits(spread, log=False) == (-90, 0)
    assert colour_limits([-300, *spread], log=False) == (-300, 0)  # upper three quarters have more than a quarter
    assert colour_limits([1, 1, 1, 0.1], log=False) == (0.1, 1)
    assert colour_limits([1e-6, 1, 2, 3], log=True) == (1e-6, 3)


def test_an_axis_says_what_is_cut_off():
    figure, ax = plt.subplots()
    ax.plot([-1e6, -100, -50, 0])
    cut_axis(ax, [-1e6, -100, -50, 0])
    assert ax.get_ylim() == (-115, 5)
    assert [text.get_text() for text in ax.texts] == ["cut off below: down to -1e+06"]
    plt.close(figure)


@pytest.mark.parametrize("values", [[-100, -50, 0], [-1e4, -100, -50, 0], [-np.inf, np.nan], []])
def test_an_axis_that_shows_all_stays_as_it_is(values):
    figure, ax = plt.subplots()
    ax.plot([-100, -50, 0])
    before = ax.get_ylim()
    cut_axis(ax, values)
    assert ax.get_ylim() == before
    assert not ax.texts
    plt.close(figure)
