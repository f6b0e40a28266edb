"""Scales that a few very low values cannot flatten."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from jedax.report.scales import cut_axis, lowest_shown

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


@pytest.mark.parametrize(("values", "lowest"), CASES)
def test_where_a_scale_begins(values, lowest):
    assert lowest_shown(values) == lowest
    assert lowest_shown(values[::-1]) == lowest


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
