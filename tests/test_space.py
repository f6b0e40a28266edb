"""Search spaces: the mappings against closed forms, folding and round trips by hypothesis, draws, specs and errors."""

import json
import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jedax.errors import JedaxError
from jedax.space import Choice, Integer, Real, Space

MIXED = Space(
    {
        "gain": Real(0.1, 400.1, log=True),
        "teeth": Integer(8, 60),
        "material": Choice("steel", "brass", None),
        "angle": (0, 90),
        "layers": Integer(1, 1000, log=True),
        "mass": Real(low=0.3),
        "offset": Real(high=-0.7, scale=3),
        "shift": Real(start=2, scale=0.5),
        "rate": Real(low=1e-3, log=True, start=0.02, scale=2),
        "flag": [True, False, "both", 3],
        "load": Real(-0.1, 0.7, start=0.5, scale=0.3),
    }
)
LOWS = [0.1, 8, 0, 0, 1, 0.3, -math.inf, -math.inf, 1e-3, 0, -0.1]
HIGHS = [400.1, 60, 2, 90, 1000, math.inf, -0.7, math.inf, math.inf, 3, 0.7]
fold_in_jax, values_in_jax, settled_in_jax = (jax.jit(f) for f in (MIXED.fold, MIXED.values, MIXED.canonical))


def one(parameter, genotypes):
    """Return the values of a space of one parameter."""
    return Space(x=parameter).values(np.asarray(genotypes, np.float64))[..., 0]


def column(*numbers):
    return np.array(numbers, np.float64)[:, None]


def rows_of(space, width, **limits):
    # XLA takes subnormal numbers for 0, so that equal coordinates of a choice are not equal in NumPy.
    numbers = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False, width=width, **limits)
    near = st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 1 / 3, 2 / 3, float(np.float32(1 / 53))])
    return st.lists(numbers | near, min_size=space.num_params, max_size=space.num_params)


def ranges(dtype):
    """Return the ranges of the coordinates of MIXED in a type, by hand."""
    lower = [0, 0, 0, 0, 0, 0, 0, 0, -math.inf, -math.inf, math.log(1e-3 / 0.02) / 2, 0, 0, 0, 0, (-0.1 - 0.5) / 0.3]
    upper = [1, 1, 1, 1, 1, 1, 1, math.inf, 0, math.inf, math.inf, 1, 1, 1, 1, (0.7 - 0.5) / 0.3]
    return np.array(lower).astype(dtype), np.array(upper).astype(dtype)


class TestMappings:
    def test_sizes(self):
        assert MIXED.num_values == 11
        assert MIXED.num_params == 16
        assert MIXED.names[:3] == ("gain", "teeth", "material")
        assert MIXED.is_named
        assert not Space.box(0, 1, num_params=2).is_named

    def test_two_bounds(self):
        np.testing.assert_allclose(one(Real(-2, 6), column(0, 0.25, 0.5, 1)), [-2, 0, 2, 6], rtol=1e-15)

    def test_two_bounds_on_a_logarithmic_scale(self):
        found = one(Real(0.01, 100, log=True), column(0, 0.25, 0.5, 0.75, 1))
        np.testing.assert_allclose(found, [0.01, 0.1, 1, 10, 100], rtol=1e-14)

    def test_two_bounds_and_a_scale(self):
        found = one(Real(-2, 10, start=1, scale=3), column(-1, 0, 1, 3, 3.5, -1.5, 4 * 2 + 0.5))
        np.testing.assert_allclose(found, [-2, 1, 4, 10, 8.5, -0.5, 2.5])
        found = one(Real(0.01, 100, log=True, scale=0.5), column(0, 1, 2))
        np.testing.assert_allclose(found, [1, math.exp(0.5), math.e])

    @pytest.mark.parametrize("bounds", [(0.1, 400.1), (0.3, 0.9), (1e-7, 7e7)])
    def test_ends_are_exact(self, bounds):
        for log in (False, True):
            assert one(Real(*bounds, log=log), column(0, 1)).tolist() == list(bounds)

    def test_one_bound(self):
        np.testing.assert_allclose(one(Real(low=3), column(0, 2, -2)), [3, 5, 5])
        np.testing.assert_allclose(one(Real(high=3), column(0, -2, 2)), [3, 1, 1])
        # Around 5 in steps of 4, the bound 3 lies at -0.5.
        np.testing.assert_allclose(one(Real(low=3, start=5, scale=4), column(0, 1, -0.5, -1)), [5, 9, 3, 5])

    def test_one_bound_on_a_logarithmic_scale(self):
        found = one(Real(low=2, log=True, scale=math.log(10)), column(0, 1, 3))
        np.testing.assert_allclose(found, [2, 20, 2000], rtol=1e-14)

    def test_no_bound(self):
        np.testing.assert_array_equal(one(Real(), column(-7, 0.25)), [-7, 0.25])
        np.testing.assert_array_equal(one(Real(start=1, scale=2), column(-7, 0.25)), [-13, 1.5])

    def test_integers_have_equal_shares(self):
        ends = np.arange(6) / 5
        middle = (np.arange(5) + 0.5) / 5
        assert one(Integer(-2, 2), middle[:, None]).tolist() == [-2, -1, 0, 1, 2]
        assert one(Integer(-2, 2), np.nextafter(ends[:-1], 1)[:, None]).tolist() == [-2, -1, 0, 1, 2]
        assert one(Integer(-2, 2), np.nextafter(ends[1:], 0)[:, None]).tolist() == [-2, -1, 0, 1, 2]
        counts = np.bincount(one(Integer(0, 6), np.linspace(0, 1, 7 * 1000 + 1)[:, None]).astype(int))
        np.testing.assert_allclose(counts, 1000, atol=1)

    def test_integers_on_a_logarithmic_scale(self):
        # The ends of the shares of 1, 2, 3, 4 are 0.5, 1.5, 2.5, 3.5, 4.5.
        ends = np.log(np.array([0.5, 1.5, 2.5, 3.5, 4.5]) / 0.5) / np.log(9)
        assert one(Integer(1, 4, log=True), ends[1:, None] - 1e-9).tolist() == [1, 2, 3, 4]
        assert one(Integer(1, 4, log=True), ends[:-1, None] + 1e-9).tolist() == [1, 2, 3, 4]

    def test_choice_takes_the_first_of_the_largest(self):
        genotypes = np.array([[0.1, 0.9, 0.3], [0.5, 0.2, 0.5], [0, 0, 0], [0, 0.3, 0.4], [0.3, 1.8, 0.25]])
        found = one(Choice("a", "b", "c"), genotypes)
        assert found.tolist() == [1, 0, 0, 2, 0]  # 1.8 is reflected to 0.2

    def test_choices_of_different_lengths(self):
        space = Space(a=Choice(1, 2), x=Real(0, 1), b=Choice("p", "q", "r"))
        genotypes = np.array([[0.1, 0.2, 0.3, 0.9, 0.1, 0.2], [0.9, 0.2, 0.7, 0.1, 0.2, 0.95]])
        assert space.values(genotypes).tolist() == [[1, 0.3, 0], [0, 0.7, 2]]
        np.testing.assert_allclose(jax.jit(space.values)(genotypes), space.values(genotypes), rtol=1e-6)
        assert space.dicts(genotypes) == [{"a": 2, "x": 0.3, "b": "p"}, {"a": 1, "x": 0.7, "b": "r"}]

    def test_dicts_hold_numbers_and_options_of_python(self):
        found = MIXED.dict_of(np.full(16, 0.5, np.float32))
        kinds = [float, int, str, float, int, float, float, float, float, bool, float]
        assert [type(value) for value in found.values()] == kinds
        assert (found["teeth"], found["material"], found["flag"]) == (34, "steel", True)
        json.dumps(found)

    def test_leading_shapes(self):
        genotypes = np.random.default_rng(0).normal(size=(2, 3, 16))
        values = MIXED.values(genotypes)
        assert values.shape == (2, 3, 11)
        np.testing.assert_array_equal(values[1, 2], MIXED.values(genotypes[1, 2]))
        np.testing.assert_array_equal(MIXED.fold(genotypes)[1, 2], MIXED.fold(genotypes[1, 2]))

    def test_types(self):
        assert MIXED.values(np.zeros(16, np.float32)).dtype == np.float32
        assert MIXED.values([0] * 16).dtype == np.float64
        assert MIXED.fold(np.zeros(16, np.float16)).dtype == np.float32
        assert isinstance(values_in_jax(np.zeros(16)), jax.Array)

    def test_vmap(self):
        genotypes = jax.random.normal(jax.random.key(0), (5, 16))
        np.testing.assert_allclose(jax.jit(jax.vmap(MIXED.values))(genotypes), MIXED.values(genotypes), rtol=1e-6)


class TestFold:
    def test_triangle_wave(self):
        found = Space.box(0, 1, num_params=1).fold(column(-0.25, 1.25, 2.25, -2.25, 3.5, -1, 2, 100.75))
        assert found[:, 0].tolist() == [0.25, 0.75, 0.25, 0.25, 0.5, 1, 0, 0.75]

    @settings(deadline=None)
    @given(rows_of(MIXED, 64))
    def test_stays_within_float64_ranges(self, row):
        folded = MIXED.fold(np.array(row))
        lower, upper = ranges(np.float64)
        assert (folded >= lower).all()
        assert (folded <= upper).all()
        np.testing.assert_array_equal(MIXED.fold(folded), folded)

    @settings(deadline=None)
    @given(rows_of(MIXED, 32))
    def test_stays_within_float32_ranges_in_jax(self, row):
        folded = np.asarray(fold_in_jax(jnp.array(row, jnp.float32)))
        lower, upper = ranges(np.float32)
        assert (folded >= lower).all()
        assert (folded <= upper).all()
        np.testing.assert_array_equal(fold_in_jax(folded), folded)

    @settings(deadline=None)
    @given(st.lists(st.floats(0, 1, width=32, allow_subnormal=False), min_size=16, max_size=16))
    def test_coordinates_within_their_ranges_keep_their_bits(self, row):
        inside = np.array(row, np.float32) + np.float32(0)
        inside[8] *= -1
        inside[15] *= np.float32(0.6)
        for found in (MIXED.fold(inside), np.asarray(fold_in_jax(inside))):
            assert np.abs(found).tobytes() == np.abs(inside).tobytes()  # a zero may lose its sign

    @settings(deadline=None)
    @given(st.floats(-1e6, 1e6), st.integers(-1000, 1000))
    def test_has_period_two_and_is_even(self, x, periods):
        fold = Space.box(0, 1, num_params=1).fold
        assert fold([x]) == fold([-x])
        np.testing.assert_allclose(fold([x + 2 * periods]), fold([x]), atol=1e-9)

    def test_not_a_number_stays(self):
        folded = MIXED.fold(np.full(16, np.nan))
        assert np.isnan(folded).all()
        assert np.isnan(np.asarray(fold_in_jax(jnp.full(16, jnp.nan)))).all()
        assert MIXED.fold(np.full(16, np.inf))[9] == np.inf


class TestBounds:
    def check(self, values):
        values = np.asarray(values).astype(np.float64)
        assert (values >= LOWS).all()
        assert (values <= HIGHS).all()
        assert np.isfinite(values).all()
        whole = values[[1, 2, 4, 9]]
        np.testing.assert_array_equal(whole, np.floor(whole))

    @settings(deadline=None)
    @given(rows_of(MIXED, 64))
    def test_float64(self, row):
        self.check(MIXED.values(np.array(row)))

    @settings(deadline=None)
    @given(rows_of(MIXED, 32))
    def test_float32(self, row):
        genotype = np.array(row, np.float32)
        self.check(MIXED.values(genotype))
        found = np.asarray(values_in_jax(genotype))
        self.check(found)
        # NumPy and JAX agree on whole numbers and options, also at the ends of their shares.
        assert found[[1, 2, 9]].tolist() == MIXED.values(genotype)[[1, 2, 9]].tolist()

    @settings(max_examples=30, deadline=None)
    @given(st.data(), st.booleans())
    def test_any_bounds_in_float32(self, data, log):
        least = 1e-20 if log else -1e6
        low = data.draw(st.floats(least, 1e6))
        high = data.draw(st.floats(low + abs(low) * 1e-5 + 1e-12, 1e7, exclude_min=True))
        space = Space(x=Real(low, high, log=log))
        genotypes = np.concatenate([np.linspace(0, 1, 101), np.nextafter(np.float32([0, 1]), 2)]).astype(np.float32)
        values = np.asarray(jax.jit(space.values)(genotypes[:, None])).astype(np.float64)
        assert (values >= low).all()
        assert (values <= high).all()

    def test_large_integers_in_float32(self):
        space = Space(x=Integer(0, 2**31 - 1))
        genotypes = np.linspace(0, 1, 101, dtype=np.float32)[:, None]
        assert space.values(genotypes).astype(np.float64).max() == 2**31 - 128  # the largest float32 below 2^31
        assert space.values(genotypes.astype(np.float64)).max() == 2**31 - 1

    def test_a_range_that_float32_does_not_resolve(self):
        space = Space(x=Real(0, 1), time=Real(1e9, 1e9 + 1))
        np.testing.assert_array_equal(space.values([0.5, 0.5]), [0.5, 1e9 + 0.5])
        with pytest.raises(JedaxError, match=r"time: expected a range that float32 numbers resolve, .*float64"):
            space.values(jnp.zeros(2))


def values_of(space):
    """Return a strategy of values of a space, by name."""
    strategies = {}
    for name, parameter in zip(space.names, space.parameters, strict=True):
        if isinstance(parameter, Choice):
            strategies[name] = st.sampled_from(parameter.options)
        elif isinstance(parameter, Integer):
            strategies[name] = st.integers(parameter.low, parameter.high)
        else:
            strategies[name] = st.floats(max(parameter.low, -1e6), min(parameter.high, 1e6))
    return st.fixed_dictionaries(strategies)


class TestRoundTrip:
    @settings(deadline=None)
    @given(values_of(MIXED))
    def test_dicts(self, values):
        genotype = MIXED.genotypes(values)
        assert genotype.dtype == np.float64
        np.testing.assert_array_equal(MIXED.fold(genotype), genotype)
        assert MIXED.dict_of(genotype) == {
            name: pytest.approx(value, rel=1e-12, abs=1e-9) if isinstance(value, float) else value
            for name, value in values.items()
        }

    def test_many_dicts_and_arrays(self):
        genotypes = MIXED.fold(np.random.default_rng(1).normal(size=(50, 16)))
        again = MIXED.genotypes(MIXED.dicts(genotypes))
        assert again.shape == (50, 16)
        values = MIXED.values(genotypes)
        np.testing.assert_array_equal(MIXED.genotypes(values), again)
        np.testing.assert_allclose(MIXED.values(again), values, rtol=1e-13)
        reals = [0, 5, 7, 8, 9, 10, 15]
        np.testing.assert_allclose(again[:, reals], genotypes[:, reals], atol=1e-12)
        assert MIXED.genotypes(values.reshape(5, 10, 11)).shape == (5, 10, 16)
        assert MIXED.genotypes([]).shape == (0, 16)

    @pytest.mark.parametrize(
        ("parameter", "dtype"),
        [
            (Integer(-(2**21), 2**21 - 1), np.float32),
            (Integer(1, 10**5, log=True), np.float32),
            (Integer(2**31 - 1000, 2**31 - 1), np.float64),
            (Integer(1, 10**6, log=True), np.float64),
        ],
    )
    def test_every_integer(self, parameter, dtype):
        space, values = Space(x=parameter), np.arange(parameter.low, parameter.high + 1)[:, None]
        np.testing.assert_array_equal(space.values(space.genotypes(values).astype(dtype)), values)

    def test_closed_forms(self):
        space = Space(a=Integer(0, 3), b=Choice("p", "q", "r"), c=Real(1, 100, log=True), d=Real(start=1, scale=2))
        found = space.genotypes({"a": 1, "b": "q", "c": 10, "d": 7})
        np.testing.assert_allclose(found, [1.5 / 4, 3 / 8, 3 / 4, 3 / 8, 0.5, 3])

    def test_values_of_float32_at_their_bounds(self):
        space = Space(x=Real(0.1, 400.1))
        assert float(np.float32(400.1)) > 400.1
        assert space.genotypes(np.float32([400.1])).tolist() == [1]
        assert space.genotypes(jnp.float32([400.1])).tolist() == [1]
        assert space.genotypes(jnp.float32([400.1])).dtype == np.float64
        with pytest.raises(JedaxError, match=r"x: expected a finite number from 0.1 to 400.1"):
            space.genotypes([float(np.float32(400.1))])

    def test_options_of_similar_values(self):
        space = Space(x=Choice(0, False, "0", None))
        assert [space.dict_of(space.genotypes({"x": option}))["x"] for option in (0, False, "0", None)] == [
            0, False, "0", None,
        ]  # fmt: skip
        assert space.dict_of(space.genotypes({"x": False}))["x"] is False
        assert space.genotypes({"x": 0.0}).argmax() == 0

    def test_start(self):
        assert MIXED.start_genotype is None
        space = Space(a=Real(1, 100, log=True, start=10), b=Integer(0, 3, start=2))
        np.testing.assert_allclose(space.start_genotype, [0.5, 2.5 / 4])
        space = Space(a=Real(start=1), b=Choice(1, 2), c=Integer(1, 100, log=True), d=Real(2, 6, scale=1), e=Real(2, 6))
        np.testing.assert_allclose(space.start_genotype, [0, 0.5, 0.5, 0.5, 0, 0.5])
        np.testing.assert_allclose(space.values(space.start_genotype), [1, 0, 7, 4, 4])
        assert Space(a=Real(start=1), b=Real(low=0)).start_genotype is None

    def test_where_random_genotypes_are_uniform(self):
        assert Space(a=(0, 1), b=Integer(0, 3), c=Choice(1, 2)).is_uniform
        assert not Space(a=(0, 1), b=Real(0, 3, scale=1)).is_uniform
        assert Space(a=(0, 1), b=Real(0, 3, start=1)).has_start
        assert not Space(a=(0, 1), b=Choice(1, 2)).has_start

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_coordinates_are_drawn_and_reflected_in_the_same_way(self, dtype):
        around = Space.around([0.5, 3.0, -2.0], [0.1, 2.0, 1.0], ([0, None, -5], [1, None, None]))
        for space in (MIXED, around, Space.box([-3, 1e-3], [70, 1e3])):
            own = space.coordinates
            assert own.num_params == space.num_params
            genotypes = np.random.default_rng(1).normal(scale=3, size=(50, space.num_params)).astype(dtype)
            with jax.enable_x64(dtype == np.float64), own.limited(space.limits):
                for key in jax.random.split(jax.random.key(4), 5):
                    np.testing.assert_array_equal(own.draw(key), space.draw(key))
                np.testing.assert_array_equal(own.fold(genotypes), space.fold(genotypes))
                np.testing.assert_array_equal(own.fold(jnp.asarray(genotypes)), space.fold(jnp.asarray(genotypes)))

    def test_a_program_with_limits_as_an_argument_does_for_all_spaces_with_these_coordinates(self):
        lows, highs, starts = [-5, None, 0, -1], [5, 4, None, 3], ([0, 0, 1, 2], [4, -7, 9, -0.9])
        spaces = [Space.around(x0, [0.1, 2, 3, 0.5], (lows, highs)) for x0 in starts]
        traced = []

        @jax.jit
        def both(limits, key, genotypes):
            traced.append(1)
            with spaces[0].coordinates.limited(limits):
                return spaces[0].coordinates.draw(key), spaces[0].coordinates.fold(genotypes)

        genotypes = np.random.default_rng(1).normal(scale=20, size=(50, 4))
        with jax.enable_x64(True):
            for space in spaces:
                drawn, folded = both(space.limits, jax.random.key(4), genotypes)
                np.testing.assert_array_equal(drawn, space.draw(jax.random.key(4)))
                np.testing.assert_allclose(folded, space.fold(genotypes), rtol=1e-12, atol=1e-12)
        assert len(traced) == 1
        low, high = spaces[0].coordinates.parameters[1].low, spaces[0].coordinates.parameters[1].high
        assert (low, high) == (-np.inf, 1)  # outside the context

    def test_spaces_in_other_units_have_equal_coordinates(self):
        assert Space.box([0, 1], [1, 9]).coordinates == Space(a=Real(1e-3, 1, log=True), b=(-2, -1)).coordinates
        whole = Space(a=Integer(-3, 4, start=2), b=Choice("p", "q"))
        assert whole.coordinates == Space(c=Integer(0, 7), d=Choice(1.5, None)).coordinates
        assert whole.coordinates != Space(c=Integer(0, 8), d=Choice(1.5, None)).coordinates
        assert Space(a=Integer(2, 9, log=True)).coordinates == Space(b=Integer(2, 9, log=True, start=5)).coordinates
        assert Space(a=Integer(2, 9, log=True)).coordinates != Space(a=Integer(3, 10, log=True)).coordinates
        assert Space.around([1, 2], 0.5).coordinates == Space.around([7, -2], [3, 4]).coordinates
        bounded = [Space.around([x, 2], sigma, ([0, None], [9, 3])).coordinates for x, sigma in ((1, 0.5), (9, 2))]
        assert bounded[0] == bounded[1] != Space.around([1, 2], 0.5, (0, 9)).coordinates
        assert Space.box([0, 1], [1, 9]).coordinates != Space.around([1, 2], 0.5).coordinates


def ends_of(space, genotype):
    """Return where the value of each coordinate changes, below and above, found by bisection; -inf and inf: nowhere."""
    found = np.array([[-np.inf] * space.num_params, [np.inf] * space.num_params])
    for column in range(space.num_params):
        for side in (0, 1):
            steps = np.linspace(genotype[column], side, 10_001)
            rows = np.tile(genotype, (len(steps), 1))
            rows[:, column] = steps
            values = space.values(rows)[:, column]
            if (values == values[0]).all():
                continue
            last = np.argmax(values != values[0])
            near, far = steps[last - 1], steps[last]
            for _ in range(40):
                rows[0, column] = middle = (near + far) / 2
                near, far = (near, middle) if space.values(rows[0])[column] != values[0] else (middle, far)
            found[side, column] = near
    return found


class TestReach:
    """Steps that bring other whole numbers and options within reach."""

    @pytest.mark.parametrize("spread", [1e-6, 1e-3, 0.02])
    def test_whole_numbers_have_another_value_with_the_least_probability(self, spread):
        space = Space(a=Integer(0, 1), b=Integer(-3, 4), c=Integer(1, 200, log=True), d=Integer(5, 7), x=(0, 1))
        least, whole = 0.01, slice(0, 4)
        reach = jnp.full(5, spread * stats.norm.isf(least))
        with jax.enable_x64(True):
            for seed in range(10):
                g = np.random.default_rng(seed).uniform(size=5)
                step = np.asarray(space.step_within_reach(jax.random.key(seed), jnp.asarray(g), reach))
                moved = g + step
                np.testing.assert_array_equal(space.values(moved), space.values(g))
                lower, upper = ends_of(space, moved)
                likelier = np.maximum(stats.norm(moved, spread).cdf(lower), stats.norm(moved, spread).sf(upper))[whole]
                np.testing.assert_array_less(least * (1 - 1e-3), likelier)
                np.testing.assert_allclose(likelier[step[whole] != 0], least, rtol=1e-3)
                assert step[4] == 0

    @pytest.mark.parametrize("reach", [0.0, 1e-9, 3e-8, 1e-7])
    def test_steps_that_float32_does_not_resolve_change_no_value(self, reach):
        space = Space(a=Integer(0, 48), b=Integer(1, 1000, log=True), c=Choice("p", "q", "r"), d=Integer(0, 9))
        genotypes = jax.random.uniform(jax.random.key(1), (500, 6))
        keys = jax.random.split(jax.random.key(0), 500)
        steps = jax.vmap(lambda key, g: space.step_within_reach(key, g, jnp.full(6, reach)))(keys, genotypes)
        moved = genotypes + steps
        assert moved.dtype == np.float32
        np.testing.assert_array_equal(space.values(moved), space.values(genotypes))

    def test_the_nearer_end_and_sometimes_the_other(self):
        space = Space(a=Integer(0, 2), b=Integer(0, 2), c=Integer(0, 2))
        keys = jax.random.split(jax.random.key(0), 2000)
        place, reach = jnp.array([0.48, 0.52, 0.6]), jnp.full(3, 0.1)
        found = np.asarray(jax.vmap(lambda key: space.step_within_reach(key, place, reach))(keys))
        near, far = 0.48 - 1 / 3 - 0.1, 2 / 3 - 0.1 - 0.48
        for column, sign in ((0, -1), (1, 1)):
            steps = sign * found[:, column]
            np.testing.assert_allclose(steps[steps > 0], near, rtol=1e-5)
            np.testing.assert_allclose(steps[steps < 0], -far, rtol=1e-5)
            assert (steps < 0).mean() == pytest.approx(0.1, abs=0.03)
        assert (found[:, 2] == 0).all()

    def test_options_come_near_the_chosen_one(self):
        space = Space(x=(0, 1), a=Choice("p", "q", "r"), b=Choice(1, 2))
        reach = jnp.array([0.1, 0.03, 0.04, 0.1, 0.02, 0.02])
        step = space.step_within_reach(jax.random.key(0), jnp.array([0.5, 0.8, 0.2, 0.75, 0.1, 0.1]), reach)
        np.testing.assert_allclose(step, [0, 0, 0.55, 0, 0, 0], atol=1e-6)

    def test_outside_the_ranges_steps_are_reflected(self):
        space = Space(a=Integer(0, 3), b=Integer(0, 3), c=Choice(1, 2))
        inside, reach = jnp.array([0.1, 0.6, 0.9, 0.3]), jnp.full(4, 0.01)
        for key in jax.random.split(jax.random.key(0), 5):
            step = space.step_within_reach(key, inside, reach)
            assert (step[:2] != 0).all()
            for outside in (-inside, 2 - inside, 2 + inside):
                moved = outside + space.step_within_reach(key, outside, reach)
                np.testing.assert_allclose(space.fold(moved), inside + step, atol=1e-6)

    @settings(max_examples=100, deadline=None)
    @given(rows_of(MIXED, 32), rows_of(MIXED, 32))
    def test_settled_genotypes_are_equal_where_values_are(self, first, second):
        rows = np.asarray(fold_in_jax(np.float32([first, second])))  # two programs may round reflections in two ways
        found, values = np.asarray(settled_in_jax(rows)), np.asarray(values_in_jax(rows))
        is_real = np.array([isinstance(one, Real) for one in MIXED.parameters])
        np.testing.assert_array_equal(found[:, MIXED.is_real_coordinate], rows[:, MIXED.is_real_coordinate])
        np.testing.assert_array_equal(np.asarray(values_in_jax(found))[:, ~is_real], values[:, ~is_real])
        for columns, number in ((1, 1), (slice(2, 5), 2), (6, 4), (slice(11, 15), 9)):
            assert (found[0, columns] == found[1, columns]).all() == (values[0, number] == values[1, number])


class TestMutated:
    SPACE = Space(n=Integer(0, 9), x=(0, 1), kind=Choice("p", "q", "r"), m=Integer(1, 100, log=True))

    def changed(self, space, values, number=20_000):
        """Return the values of mutations of one solution."""
        rows = np.tile(np.float32(space.genotypes(np.array(values, float))), (number, 1))
        return np.asarray(space.values(jax.jit(space.mutated)(jax.random.key(0), rows)))

    def test_each_whole_number_and_option_changes_as_often_and_at_least_one(self):
        found = self.changed(self.SPACE, [4, 0.25, 1, 7]) != [4, np.float32(0.25), 1, 7]
        assert not found[:, 1].any()
        number = found.sum(axis=1)
        assert number.min() == 1
        # Three changes of probability 1/3, and one for sure where there is none.
        none = (2 / 3) ** 3
        np.testing.assert_allclose(found[:, [0, 2, 3]].mean(axis=0), 1 / 3 + none / 3, atol=0.02)
        assert (number == 3).mean() == pytest.approx(1 / 27, abs=0.01)

    def test_other_options_are_equally_likely(self):
        found = self.changed(Space(kind=Choice("p", "q", "r", "s")), [2])[:, 0]
        assert stats.chisquare(np.bincount(found.astype(int), minlength=4)[[0, 1, 3]]).pvalue > 0.001

    @pytest.mark.parametrize("parameter", [Integer(0, 100), Integer(1, 101, log=True)])
    def test_steps_of_whole_numbers_are_harmonic(self, parameter):
        """From a value in the middle, k up or down: log((k + 1) / k) / log(51)."""
        steps = self.changed(Space(x=parameter), [50 + parameter.low])[:, 0] - 50 - parameter.low
        assert set(np.unique(steps)) <= {*range(-50, 0), *range(1, 51)}
        size = np.bincount(np.abs(steps).astype(int), minlength=51)[1:]
        k = np.arange(1, 51)
        expected = len(steps) * np.log((k + 1) / k) / math.log(51)
        assert stats.chisquare(size, expected).pvalue > 0.001
        assert (steps > 0).mean() == pytest.approx(0.5, abs=0.02)

    def test_at_an_end_of_the_range_all_steps_lead_inwards(self):
        for start in (0, 9):
            found = self.changed(Space(x=Integer(0, 9)), [start])[:, 0]
            assert set(np.unique(found)) == set(range(10)) - {start}

    def test_leading_shapes_and_repeated_keys(self):
        g = self.SPACE.draw(jax.random.key(1))
        one, same = (self.SPACE.mutated(jax.random.key(2), g) for _ in range(2))
        np.testing.assert_array_equal(one, same)
        assert self.SPACE.mutated(jax.random.key(2), jnp.tile(g, (2, 3, 1))).shape == (2, 3, 6)

    def test_kinds_of_spaces(self):
        whole, option = Integer(1, 4), Choice("p", "q", "r")
        for space, discrete, categorical, number in (
            (Space(a=whole), True, False, 4),
            (Space(a=whole, b=option), True, True, 12),
            (Space(a=whole, b=option, c=(0, 1)), False, False, math.inf),
            (Space.box(0, 1, num_params=2), False, False, math.inf),
        ):
            assert (space.is_discrete, space.is_categorical, space.num_solutions) == (discrete, categorical, number)


def draws(space, number=4000):
    keys = jax.random.split(jax.random.key(0), number)
    return np.asarray(jax.jit(jax.vmap(space.draw))(keys), np.float64)


class TestDraws:
    def test_within_the_ranges(self):
        genotypes = draws(MIXED, 500)
        assert genotypes.shape == (500, 16)
        np.testing.assert_array_equal(MIXED.fold(genotypes.astype(np.float32)), genotypes)

    def test_distributions(self):
        values = MIXED.values(draws(MIXED))

        def load(x):
            """Return the probability of a value up to x: normal, reflected at -0.1 and 0.7 as often as needed."""
            images = np.arange(-5, 6)[:, None] * 1.6 - 0.1
            law = stats.norm(0.5, 0.3)
            return (law.cdf(images + (x + 0.1)) - law.cdf(images - (x + 0.1))).sum(0)

        laws = {
            "gain": stats.loguniform(0.1, 400.1).cdf,
            "angle": stats.uniform(0, 90).cdf,
            "mass": stats.halfnorm(0.3).cdf,
            "offset": lambda x: 1 - stats.halfnorm(0, 3).cdf(-0.7 - x),
            "shift": stats.norm(2, 0.5).cdf,
            "load": load,
        }
        for name, law in laws.items():
            assert stats.kstest(values[:, MIXED.names.index(name)], law).pvalue > 0.001, name

    def test_whole_numbers_and_options_are_equally_likely(self):
        values = MIXED.values(draws(MIXED))
        for name in ("teeth", "material", "flag"):
            counts = np.unique(values[:, MIXED.names.index(name)], return_counts=True)[1]
            assert stats.chisquare(counts).pvalue > 0.001, name

    def test_scale_of_a_logarithm(self):
        space = Space(x=Real(1e-9, 1e9, log=True, start=10, scale=2))
        logs = np.log(space.values(draws(space))[:, 0])
        assert stats.kstest(logs, stats.norm(math.log(10), 2).cdf).pvalue > 0.001

    def test_scale_without_start_is_centred(self):
        space = Space(x=Real(0, 10, scale=0.5))
        assert stats.kstest(space.values(draws(space))[:, 0], stats.norm(5, 0.5).cdf).pvalue > 0.001

    def test_start_without_scale_stays_uniform(self):
        space = Space(x=Real(0, 10, start=1))
        assert stats.kstest(draws(space)[:, 0], "uniform").pvalue > 0.001

    def test_around_a_point(self):
        space = Space.around([1, 2], [0.1, 3])
        values = space.values(draws(space))
        assert stats.kstest(values[:, 0], stats.norm(1, 0.1).cdf).pvalue > 0.001
        assert stats.kstest(values[:, 1], stats.norm(2, 3).cdf).pvalue > 0.001
        np.testing.assert_array_equal(space.start_genotype, [0, 0])

    def test_same_key_same_genotype(self):
        np.testing.assert_array_equal(MIXED.draw(jax.random.key(3)), MIXED.draw(jax.random.key(3)))


class TestBox:
    def test_scalars_are_broadcast(self):
        assert Space.box(-5, 5, num_params=2) == Space.box([-5, -5], [5, 5]) == Space.box(-5, np.array([5, 5]))
        assert Space.box(-5, 5, num_params=2).names == ("x0", "x1")
        assert Space.box(-5, 5, num_params=2) != Space(x0=(-5, 5), x1=(-5, 5))

    def test_none_and_infinity_are_no_bounds(self):
        space = Space.box([None, 0], [1, math.inf])
        assert space.parameters == (Real(high=1), Real(low=0))
        assert Space.box(num_params=1).parameters == (Real(),)

    def test_around(self):
        space = Space.around(np.array([1.0, 2.0]), 0.3, (0, [None, 9]))
        assert space.parameters == (Real(0, start=1, scale=0.3), Real(0, 9, start=2, scale=0.3))
        assert Space.around(1, 2).parameters == (Real(start=1, scale=2),)
        np.testing.assert_allclose(space.values(space.start_genotype), [1, 2])


SPACES = [
    MIXED,
    Space.box(-5, 5, num_params=3),
    Space.box([0, -math.inf], [1e-5, 3]),
    Space.around([1, 2], 0.3),
    Space.around([1, 2], [0.3, 1], (0, [None, 5])),
    Space({"lows": (0, 1), "highs": (0, 1)}),
    Space({"a b": Choice("1", 1.5, 2, None, True), "low": Integer(0, 1, start=0)}),
]


class TestSpec:
    @pytest.mark.parametrize("space", SPACES)
    def test_round_trip(self, space):
        spec = space.spec()
        texts = (
            json.dumps(spec, allow_nan=False),
            yaml.safe_dump(spec, sort_keys=False),
        )  # the order of the names is part of the space
        for again in (
            Space.from_spec(spec),
            Space.from_spec(json.loads(texts[0])),
            Space.from_spec(yaml.safe_load(texts[1])),
        ):
            assert again == space
            assert hash(again) == hash(space)
            assert again.spec() == spec
            assert repr(again) == repr(space)

    def test_settings_file(self):
        text = """
        gain: {low: 0.1, high: 400, log: true}
        teeth: {low: 8, high: 60, integer: true}
        material: [steel, brass]
        angle: [0, 90]
        rate: {low: 1e-6, high: 1e-1, log: true}
        share: [1e-3, 1]
        size: {choices: [8, 16]}
        mass: [0, null]
        """
        assert Space.from_spec(yaml.safe_load(text)) == Space(
            gain=Real(0.1, 400, log=True),
            teeth=Integer(8, 60),
            material=["steel", "brass"],
            angle=(0, 90),
            rate=Real(1e-6, 0.1, log=True),
            share=(1e-3, 1),
            size=Choice(8, 16),
            mass=Real(low=0),
        )

    def test_box(self):
        assert Space.box(-5, 5, num_params=20).spec() == {"lows": -5.0, "highs": 5.0, "num_params": 20}
        assert Space.box([0, 1], 5).spec() == {"lows": [0.0, 1.0], "highs": 5.0, "num_params": 2}
        assert Space.from_spec({"lows": [0, "1e-3"], "highs": [1, 2]}) == Space.box([0, 1e-3], [1, 2])
        assert Space.from_spec({"lows": [-5, 5]}) == Space.box([-5, 5])
        assert Space.from_spec({"lows": {"low": -5, "high": 5}}).names == ("lows",)
        assert Space.from_spec({"lows": {"low": 0}, "highs": [0, 1]}).names == ("lows", "highs")

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ({"x": [8, 16, 32]}, "x: expected a list of two numbers or of texts, got [8, 16, 32]"),
            ({"x": ["steel", 3]}, "x: expected a list of two numbers or of texts"),
            ({"x": ["1e3", "b"]}, "write other options as {choices: [...]}"),
            ({"x": [True, False]}, "x: expected a list of two numbers or of texts"),
            ({"x": []}, "x: expected a list of two numbers or of texts"),
            ({"x": 3}, "x: expected a mapping of settings, two bounds or a list of options, got 3"),
            ({"x": {"lo": 3}}, "x: unknown name 'lo'"),
            ({"x": {"low": 3, "high": 5, "integer": True, "scale": 1}}, "x: unknown name 'scale'"),
            ({"x": {"low": 3, "integer": True}}, "x: expected high for integer, got none"),
            ({"x": {"low": 3, "high": 4, "integer": 1}}, "x: expected true or false for integer, got 1"),
            ({"x": {"low": "many"}}, "x: expected a number for low, got 'many'"),
            ({"x": {"choices": "ab"}}, "x: expected a list of choices, got 'ab'"),
            ({"x": {"choices": ["a", "b"], "low": 1}}, "x: unknown name 'low'"),
            ({True: [0, 1]}, "space: expected names that are texts, got True"),
            ({}, "space: expected at least one parameter, got none"),
            ([0, 1], "space: expected a mapping of names to parameters, got list"),
            ({"lows": 0, "highs": 1, "number": 3}, "space: unknown name 'number'"),
            ({"lows": 0, "highs": 1}, "num_params: expected a number of at least 1, got none"),
        ],
    )
    def test_errors(self, spec, message):
        with pytest.raises(JedaxError) as error:
            Space.from_spec(spec)
        assert message in str(error.value)


class TestContents:
    def test_equality_and_hash(self):
        assert Space(a=(0, 1), b=(0, 2)) == Space({"a": Real(0.0, 1.0), "b": Real(np.float64(0), 2)})
        assert len({Space(a=(0, 1)), Space(a=(0, 1)), Space(a=(0, 2)), Space(b=(0, 1))}) == 3
        assert Space(a=(0, 1), b=(0, 2)) != Space(b=(0, 2), a=(0, 1))
        assert Choice(1, 2) != Choice(True, 2)
        assert Choice("1", 2) != Choice(1, 2)
        assert Choice(np.int64(1), 2) == Choice(1, 2)

    def test_equal_spaces_are_compiled_once(self):
        traced = []

        def decode(space, genotype):
            traced.append(space)
            return space.values(genotype)

        jitted = jax.jit(decode, static_argnums=0)
        for _ in range(2):
            jitted(Space(a=(0, 1), b=Choice("p", "q")), jnp.zeros(3))
        assert len(traced) == 1

    def test_repr(self):
        space = Space(gain=Real(0.1, 400, log=True), teeth=Integer(8, 60), material=["steel", "brass"], mass=Real())
        assert repr(space) == (
            "Space(gain=Real(low=0.1, high=400.0, log=True), teeth=Integer(low=8, high=60), "
            "material=Choice('steel', 'brass'), mass=Real())"
        )
        assert eval(repr(space)) == space
        assert repr(Space({"a b": (0, 1)})) == "Space({'a b': Real(low=0.0, high=1.0)})"
        assert repr(Space({"lambda": Integer(1, 2)})) == "Space({'lambda': Integer(low=1, high=2)})"
        assert repr(Space.box(-5, 5, num_params=3)) == "Space.box(lows=-5.0, highs=5.0, num_params=3)"
        assert len(repr(Space.around(np.arange(1000.0), 1))) < 200

    def test_pickle_and_immutability(self):
        MIXED.values(np.zeros(16))
        assert pickle.loads(pickle.dumps(MIXED)) == MIXED
        with pytest.raises(AttributeError):
            MIXED.names = ()
        with pytest.raises(AttributeError):
            MIXED.parameters[0].low = 3


class TestErrors:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (Real(2, 1), "gain: expected low below high, got low=2.0, high=1.0; swap or change them."),
            ((1, 1), "gain: expected low below high"),
            (Real(math.inf), "gain: expected low below high"),
            (Real(math.nan), "gain: expected a number for low, got nan"),
            (Real("0"), "gain: expected a number for low, got '0'"),
            (Real(True), "gain: expected a number for low, got True"),
            (Real(0, [1, 2]), "gain: expected a number for high, got [1, 2]"),
            (Real(0, 1, log=True), "gain: expected low above 0 for log=True, got low=0.0"),
            (Real(log=True), "gain: expected low above 0 for log=True, got low=-inf"),
            (Real(0, 1, log="yes"), "gain: expected true or false for log, got 'yes'"),
            (Real(0, 1, start=2), "gain: expected a start from 0.0 to 1.0, got 2.0; move it within the bounds."),
            (Real(start=math.inf), "gain: expected a finite number for start, got inf"),
            (Real(0, 1, scale=0), "gain: expected a scale above 0, got 0.0"),
            (Real(0, 1, scale=math.nan), "gain: expected a finite number for scale, got nan"),
            (Real(-1e308, 1e308), "gain: expected a range that float64 numbers resolve"),
            (
                Real(1e300, math.nextafter(1e300, math.inf), log=True),
                "gain: expected a range that float64 numbers resolve",
            ),
            (Integer(3, 3), "gain: expected low below high, got low=3, high=3"),
            (Integer(0, 2.5), "gain: expected a whole number from -2147483647 to 2147483647 for high, got 2.5"),
            (Integer(0, 2**31), "gain: expected a whole number from -2147483647 to 2147483647 for high"),
            (Integer(0, 10**400), "gain: expected a finite number for high"),
            (Integer(0, 5, log=True), "gain: expected low above 0 for log=True, got low=0"),
            (Integer(0, 5, start=6), "gain: expected a start from 0 to 5, got 6"),
            (Choice("a"), "gain: expected at least two distinct options, got Choice('a')"),
            (["a", "a"], "gain: expected at least two distinct options"),
            (Choice(1, 1.0), "gain: expected at least two distinct options"),
            (Choice("a", math.nan), "gain: expected options that are texts, finite numbers, booleans or None, got nan"),
            (Choice("a", (1,)), "gain: expected options that are texts, finite numbers, booleans or None, got (1,)"),
            (
                [0, 90],
                "write (low, high) for a range, Real(low, high, log=True) for a logarithmic one "
                "or Choice(...) for options",
            ),
            (
                (0, 1, 2),
                "gain: expected a Real, an Integer, a Choice, a tuple (low, high), a list of options",
            ),
            ("steel", "gain: expected a Real, an Integer, a Choice, a tuple (low, high), a list of options"),
        ],
    )
    def test_parameters(self, given, message):
        with pytest.raises(JedaxError) as error:
            Space(gain=given)
        assert message in str(error.value)

    @pytest.mark.parametrize(
        ("build", "message"),
        [
            (lambda: Space(), "space: expected at least one parameter, got none"),
            (lambda: Space([(0, 1)]), "space: expected a mapping of names to parameters, got list"),
            (lambda: Space({1: (0, 1)}), "space: expected names that are texts, got 1"),
            (lambda: Space({"": (0, 1)}), "space: expected names that are texts, got ''"),
            (lambda: Space({"a": (0, 1)}, a=(0, 1)), "a: expected one parameter of this name, got two"),
            (lambda: Space.box(0, 1), "num_params: expected a number of at least 1, got none"),
            (lambda: Space.box([], []), "num_params: expected a number of at least 1, got 0"),
            (lambda: Space.box(0, 1, num_params=1.5), "num_params: expected a whole number"),
            (lambda: Space.box([0, 0], [1, 1, 1]), "highs: expected 2 numbers, got 3"),
            (lambda: Space.box([0, 0], 1, num_params=3), "lows: expected 3 numbers, got 2"),
            (lambda: Space.box([0, 2], [1, 1]), "parameter 1: expected low below high, got low=2.0, high=1.0"),
            (lambda: Space.around([1, 2], 1, (0, 1.5)), "parameter 1: expected a start from 0.0 to 1.5, got 2.0"),
            (lambda: Space.around([1, 2], -1), "sigma0: expected numbers above 0, got -1"),
            (lambda: Space.around([1, 2], None), "sigma0: expected a finite number, got None"),
            (lambda: Space.around([1, None], 1), "x0: expected a finite number, got None"),
            (lambda: Space.around([1, 2], [1, 2, 3]), "sigma0: expected 1 or 2 numbers, got 3"),
            (lambda: Space.around([1, 2], 1, 3), "bounds: expected the pair (lows, highs), got 3"),
        ],
    )
    def test_spaces(self, build, message):
        with pytest.raises(JedaxError) as error:
            build()
        assert message in str(error.value)

    SMALL = Space(gain=Real(1, 2), teeth=Integer(8, 60), material=Choice("steel", "brass"), mass=Real(low=0))
    GOOD = {"gain": 1.5, "teeth": 9, "material": "brass", "mass": 3}

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (GOOD | {"gain": 3}, "gain: expected a finite number from 1.0 to 2.0, got 3.0"),
            (GOOD | {"gain": math.nan}, "gain: expected a finite number, got nan"),
            (GOOD | {"gain": "1"}, "gain: expected a finite number, got '1'"),
            (GOOD | {"mass": -1}, "mass: expected a finite number from 0.0 to inf, got -1.0"),
            (GOOD | {"teeth": 8.5}, "teeth: expected a whole number from 8 to 60, got 8.5"),
            (GOOD | {"material": "lead"}, "material: expected one of 'steel', 'brass', got 'lead'"),
            (GOOD | {"material": 1}, "material: expected one of 'steel', 'brass', got 1"),
            (GOOD | {"material": ["steel"]}, "material: expected one of 'steel', 'brass', got ['steel']"),
            (GOOD | {"tooth": 8}, "parameter: unknown name 'tooth'; did you mean 'teeth'?"),
            ({"gain": 1.5}, "teeth: expected a value, got none; give all of gain, teeth, material, mass."),
            ([GOOD, GOOD | {"gain": 3}], "gain[1]: expected a finite number from 1.0 to 2.0"),
            ([1.5, 9, 2, 3], "material: expected the index of an option, a whole number from 0 to 1, got 2"),
            ([1.5, 9, 0, math.inf], "mass: expected a finite number from 0.0 to inf, got inf"),
            ([1.5, 9, 0], "values: expected shape (..., 4), got (3,)"),
            (3, "values: expected shape (..., 4), got ()"),
            (["a", "b", "c", "d"], "values: expected an array of numbers"),
            ([[1, 2, 3, 4], [1, 2]], "values: expected an array of numbers"),
        ],
    )
    def test_values(self, values, message):
        with pytest.raises(JedaxError) as error:
            self.SMALL.genotypes(values)
        assert message in str(error.value)

    def test_genotypes(self):
        for method in (self.SMALL.fold, self.SMALL.values, self.SMALL.dicts, jax.jit(self.SMALL.values)):
            with pytest.raises(JedaxError, match=r"genotypes: expected shape \(\.\.\., 5\), got \(2, 4\)"):
                method(jnp.zeros((2, 4)))
        with pytest.raises(JedaxError, match=r"genotypes: expected shape \(batch, 5\), got \(5,\)"):
            self.SMALL.dicts(np.zeros(5))
        with pytest.raises(JedaxError, match="genotypes: expected finite numbers, got NaN or inf"):
            self.SMALL.dict_of(np.full(5, np.nan))
        with pytest.raises(JedaxError, match="genotypes: expected an array of numbers"):
            self.SMALL.values(["a"] * 5)


def test_bounds_of_more_than_64_bits():
    assert Space({"a": (0, 10**20)}).parameters[0].high == 1e20
    with pytest.raises(JedaxError, match="a: expected a number for high, got 1000"):
        Space({"a": (0, 10**400)})


class TestSmoothPoints:
    """Points of which the reflection at bounds has no edge."""

    SPACE = Space(a=(-5, 5), b=Integer(0, 9), c=Real(low=2), d=Real())

    def test_they_are_the_genotypes_but_near_bounds_of_real_numbers(self):
        inside = np.random.default_rng(0).uniform(0.04, 0.96, (50, 4))
        outside = inside.copy()
        outside[:, [1, 3]] = np.random.default_rng(1).uniform(-2, 3, (50, 2))
        with jax.enable_x64(True):
            for genotypes in (inside, outside):
                np.testing.assert_array_equal(self.SPACE.to_smooth(jnp.asarray(genotypes)), genotypes)
                np.testing.assert_array_equal(self.SPACE.from_smooth(jnp.asarray(genotypes)), genotypes)

    def test_there_and_back(self):
        with jax.enable_x64(True):
            genotypes = jnp.asarray(np.random.default_rng(2).uniform(-1.5, 2.5, (500, 4)))
            there = self.SPACE.to_smooth(genotypes)
            np.testing.assert_allclose(self.SPACE.from_smooth(there), genotypes, atol=1e-13)
            back = self.SPACE.to_smooth(self.SPACE.from_smooth(genotypes))
            np.testing.assert_allclose(back, genotypes, atol=1e-7)  # the root of a distance of rounding

    @pytest.mark.parametrize(("bound", "inwards"), [(0.0, 1), (1.0, -1)])
    def test_the_reflection_is_even_and_smooth(self, bound, inwards):
        with jax.enable_x64(True):
            space, steps = Space(a=(0, 1)), jnp.linspace(0, 0.4, 4001)[:, None]
            crossing = bound - 0.03 * inwards
            here, there = (space.fold(space.from_smooth(crossing + side * inwards * steps)) for side in (1, -1))
            np.testing.assert_allclose(here, there, atol=1e-12)
            distance = np.abs(here[:, 0] - bound)
            near, far = steps[:, 0] <= 0.06, steps[:, 0] >= 0.06
            np.testing.assert_allclose(distance[near], np.square(steps[near, 0]) / 0.12, atol=1e-12)
            np.testing.assert_allclose(distance[far], steps[far, 0] - 0.03, atol=1e-12)
            assert np.abs(np.diff(distance, 2)).max() < 2e-7  # no edge: one would be 1e-4
