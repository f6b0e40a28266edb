"""`Optimizer` with parameters in the user's units, and with descriptors that are measured or that do not exist."""

import json

import jax
import numpy as np
import pandas
import pytest
from scipy import stats
from tests.search.outside import BOUNDS, JEDI_X, MAPS, drive, make, simulate, step

import jedax
from jedax import Choice, Integer, Real, Space
from jedax.search.compiled import Programs
from jedax.search.programs import forget_programs
from jedax.tasks import Task

SPACE = {
    "gain": Real(0.1, 400, log=True),
    "teeth": Integer(8, 60),
    "material": ["steel", "brass", "wood"],
    "angle": (0, 90),
}
LOWS, HIGHS = np.array([-1.0, 0.5, 100.0]), np.array([2.0, 0.6, 1e5])


def gear(rows):
    """Return minus the cost of a gear, best with a gain of 10, 20 teeth of brass and an angle of 90."""
    costs = [
        abs(np.log10(row["gain"]) - 1) + abs(row["teeth"] - 20) / 10 + (row["material"] != "brass")
        + (90 - row["angle"]) / 90
        for row in rows
    ]  # fmt: skip
    return -np.array(costs), np.array([[row["teeth"] / 60, row["angle"] / 90] for row in rows])


def named(**changes):
    settings = {"descriptor_bounds": ([0, 0], [1, 1]), "evaluations": 2000, "cells": 16, "space": SPACE}
    return jedax.Optimizer(**{**settings, **changes})


def corner(values):
    """Return a fitness that is best far outside of the bounds, and descriptors."""
    unit = (values - LOWS) / (HIGHS - LOWS)
    return unit @ [1.0, -2.0, 3.0], np.clip(unit[:, :2], 0, 1)


class TestNamed:
    def test_tables_beside_ids(self):
        optimizer = named()
        ids = optimizer.ask_ids()
        table = pandas.DataFrame([optimizer.asked[one] for one in ids])
        optimizer.tell(table[table.columns[::-1]], *gear(table.to_dict("records")), ids=ids)
        assert optimizer.evaluations == len(ids)

    def test_solutions_are_dicts_in_the_units_of_the_user(self):
        optimizer = named()
        for _ in range(3):
            rows = optimizer.ask()
            for row in rows:
                assert list(row) == list(SPACE)
                assert 0.1 <= row["gain"] <= 400
                assert type(row["teeth"]) is int
                assert 8 <= row["teeth"] <= 60
                assert row["material"] in ("steel", "brass", "wood")
                assert 0 <= row["angle"] <= 90
            optimizer.tell(rows, *gear(rows))
            assert optimizer.evaluations % len(rows) == 0  # every row is found again

    def test_it_finds_the_best(self):
        optimizer = named()
        while not optimizer.done:
            rows = optimizer.ask()
            optimizer.tell(rows, *gear(rows))
        best = optimizer.best
        assert best.parameters["material"] == "brass"
        assert best.parameters["teeth"] == 20
        assert best.parameters["angle"] == pytest.approx(90, abs=1)
        assert best.parameters["gain"] == pytest.approx(10, rel=0.05)
        np.testing.assert_allclose(best.genotype, [best.parameters["gain"], 20, 1, best.parameters["angle"]])
        assert best.fitness == pytest.approx(gear([best.parameters])[0][0], abs=1e-12)
        filled = np.isfinite(optimizer.repertoire.fitness)
        assert optimizer.values(optimizer.repertoire.genotypes[filled]).shape == (filled.sum(), 4)

    def test_after_a_detour_through_json_and_in_any_order(self):
        optimizer = named()
        rows = json.loads(json.dumps(optimizer.ask()))[::-1]
        optimizer.tell(rows, *gear(rows))
        assert optimizer.evaluations == len(rows)
        assert np.isfinite(optimizer.best.fitness)

    def test_a_table_whose_columns_have_another_order(self):
        optimizer = named(initial=pandas.DataFrame({"angle": [45], "material": ["wood"], "teeth": [9], "gain": [1.5]}))
        rows = optimizer.ask()
        assert rows[0] == pytest.approx({"gain": 1.5, "teeth": 9, "material": "wood", "angle": 45})
        table = pandas.DataFrame(rows)[["material", "angle", "teeth", "gain"]]
        optimizer.tell(table, *gear(rows))
        assert not optimizer.asked
        assert optimizer.best.fitness == gear(rows)[0].max()
        with pytest.raises(jedax.JedaxError, match="parameter: unknown name 'cost'"):
            optimizer.tell(table.assign(cost=1), *gear(rows))

    def test_a_table_whose_missing_values_are_the_option_none(self):
        optimizer = jedax.Optimizer(space={"a": jedax.Choice(None, "x"), "b": (0, 3)})
        rows = optimizer.ask()
        assert {row["a"] for row in rows} == {None, "x"}
        optimizer.tell(pandas.DataFrame(rows), [row["b"] for row in rows])
        assert optimizer.evaluations == len(rows)
        twice = pandas.DataFrame([["x", "x", 1.0]], columns=["a", "a", "b"])
        with pytest.raises(jedax.JedaxError, match="columns: expected each name once, got 'a' twice"):
            optimizer.tell(twice, [1.0])

    def test_a_row_of_a_table(self):
        row = pandas.Series({"angle": 45, "material": "wood", "teeth": 9, "gain": 1.5})
        optimizer = named(initial=row)
        rows = optimizer.ask()
        assert rows[0] == pytest.approx({"gain": 1.5, "teeth": 9, "material": "wood", "angle": 45})
        optimizer.tell(pandas.DataFrame(rows).iloc[0], *gear(rows[:1]))
        assert len(optimizer.asked) == len(rows) - 1

    def test_one_dict_and_rows_of_numbers(self):
        optimizer = named()
        rows = optimizer.ask()
        optimizer.tell(rows[0], *gear(rows[:1]))
        values = optimizer.values(optimizer._ledger.opened.genotypes[0])[None]
        optimizer.tell(values, *gear(rows[1:2]))
        assert optimizer.ask() == rows[2:]

    def test_ones_own(self):
        mine = {"gain": 10.0, "teeth": 20, "material": "brass", "angle": 90}
        optimizer = named()
        optimizer.add([mine], *gear([mine]))
        rows = optimizer.ask()
        optimizer.tell(rows, *gear(rows))
        assert optimizer.best.parameters == pytest.approx({**mine, "material": "brass"})
        assert optimizer.best.fitness == 0

    def test_a_start(self):
        mine = {"gain": 10.0, "teeth": 20, "material": "brass", "angle": 45}
        first = named(x0=mine, initial=[{**mine, "teeth": 21}]).ask()[:2]
        assert [row["teeth"] for row in first] == [20, 21]
        assert first[0] == pytest.approx(mine)

    def test_without_a_start_it_begins_in_the_middle(self):
        middle = {"gain": np.sqrt(40), "teeth": 34, "material": "steel", "angle": 45}
        assert named().ask()[0] == pytest.approx(middle)
        space = {**SPACE, "gain": Real(0.1, 400, log=True, start=100.0)}
        assert named(space=space).ask()[0] == pytest.approx({**middle, "gain": 100})
        mine = {"gain": 10.0, "teeth": 20, "material": "brass", "angle": 45}
        assert named(initial=[mine]).ask()[0] == pytest.approx(mine)
        assert named(initial=[]).ask()[0] != pytest.approx(middle)
        np.testing.assert_allclose(jedax.Optimizer(bounds=(LOWS, HIGHS)).ask()[0], (LOWS + HIGHS) / 2, rtol=1e-6)

    def test_nothing_is_explored_without_descriptors(self):
        for descriptor_bounds, exploration in ((None, 0), (((0,), (1,)), 0.1), ("measure", 0.1)):
            assert jedax.Optimizer(3, descriptor_bounds).config.exploration == exploration

    def test_the_first_step_is_shorter_between_bounds(self):
        for arguments, steps in (
            ({"bounds": (LOWS, HIGHS)}, (0.5, 1.0)),
            ({"bounds": (LOWS, HIGHS), "x0": LOWS}, (0.5, 1.0)),
            ({"bounds": (LOWS, HIGHS), "x0": LOWS, "sigma0": 0.1}, (1.0, 1.0)),
            ({"bounds": (LOWS, None), "x0": LOWS}, (1.0, 1.0)),
            ({"num_params": 3}, (1.0, 1.0)),
            ({"bounds": (LOWS, HIGHS), "first_step": 0.3}, (0.3, 1.0)),
        ):
            config = jedax.Optimizer(**arguments).config
            assert (config.first_step, config.restart_step) == steps

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"material": "gold"}, "material: expected one of 'steel', 'brass', 'wood', got 'gold'"),
            ({"teeth": 61}, r"teeth(\[0\])?: expected a whole number from 8 to 60, got 61"),
            ({"teeth": 20.5}, r"teeth(\[0\])?: expected a whole number from 8 to 60, got 20.5"),
            ({"gain": 0.0}, r"gain(\[0\])?: expected a finite number from 0.1 to 400"),
            ({"angle": np.nan}, "angle: expected a finite number"),
            ({"colour": 3}, "parameter: unknown name 'colour'"),
        ],
    )
    def test_solutions_that_do_not_exist(self, changes, message):
        optimizer = named()
        mine = {"gain": 10.0, "teeth": 20, "material": "brass", "angle": 90, **changes}
        with pytest.raises(jedax.JedaxError, match=message):
            optimizer.tell([mine], [0.0], [[0.5, 0.5]])
        with pytest.raises(jedax.JedaxError, match=message):
            named(x0=mine)

    def test_a_space_as_an_object_with_other_arguments(self):
        space = jedax.Space(SPACE)
        assert named(space=space, num_params=4).ask() == named().ask()
        with pytest.raises(jedax.JedaxError, match=r"num_params: expected 4, as many as space has, got 5"):
            named(num_params=5)
        with pytest.raises(jedax.JedaxError, match=r"space: expected no bounds beside it, got bounds=\(0, 1\)"):
            named(bounds=(0, 1))
        with pytest.raises(jedax.JedaxError, match=r"space: expected no sigma0 beside it, got sigma0=1; give .* scale"):
            named(sigma0=1)

    def test_bounds_tell_the_number_of_parameters_also_beside_sigma0(self):
        near = jedax.Optimizer(bounds=([0, 0], [10, 10]), sigma0=0.5, evaluations=100).ask()
        assert near.shape[1] == 2
        np.testing.assert_array_equal(near[0], 5)
        assert np.abs(near[1:] - 5).max() < 3
        with pytest.raises(jedax.JedaxError, match=r"num_params: expected the number .* or bounds of each parameter"):
            jedax.Optimizer(bounds=(0, 10), sigma0=0.5)

    def test_equal_solutions_of_whole_numbers(self):
        """Eight places, and only two solutions: each result fills one place."""
        optimizer = jedax.Optimizer(
            descriptor_bounds=None,
            evaluations=80,
            space={"choice": Choice("a", "b")},
            noisy=True,
            **{**MAPS, "cells": 1},
        )
        while not optimizer.done:
            for row in optimizer.ask():
                optimizer.tell(row, [float(row["choice"] == "b")])
        assert optimizer.evaluations == 80
        assert optimizer.best.parameters == {"choice": "b"}


class TestBounds:
    @pytest.mark.parametrize(
        "settings",
        [
            JEDI_X,
            {},
            MAPS,
            {"method": "cma-me", "population": 4, "pool": 2, "step_size": 1.0},
            {"method": "jedi-uniform", "population": 4, "pool": 2, "generations": 3, "step_size": 1.0},
            {"method": "es", "population": 8, "step_size": 1.0},
        ],
        ids=["jedi-x", "defaults", "map-elites", "cma-me", "jedi-uniform", "es"],
    )
    def test_no_solution_leaves_them(self, settings):
        optimizer = jedax.Optimizer(
            descriptor_bounds=([0, 0], [1, 1]), evaluations=600, bounds=(LOWS, HIGHS), **{"cells": 16, **settings}
        )
        while not optimizer.done:
            values = np.concatenate([optimizer.ask(), optimizer.ask(3)])
            assert ((values >= LOWS) & (values <= HIGHS)).all()
            optimizer.tell(values, *corner(values))
        best = (optimizer.best.genotype - LOWS) / (HIGHS - LOWS)
        assert corner(optimizer.best.genotype[None])[0] == pytest.approx(optimizer.best.fitness)
        assert best @ [1, -2, 3] > 2.5  # of 4, in the corner

    def test_one_number_for_all_and_no_bound_on_a_side(self):
        values = make(bounds=(0, None), num_params=6).ask(200)
        assert (values > 0).all()
        assert values.max() > 1
        values = make(bounds=(-5, 5)).ask(200)
        assert (np.abs(values) <= 5).all()
        assert stats.kstest(values.ravel(), stats.uniform(-5, 10).cdf).pvalue > 1e-4

    def test_pairs(self):
        values = jedax.Optimizer(bounds=[(-1, 1), (2, 5)], evaluations=200).ask(100)
        assert ((values >= [-1, 2]) & (values <= [1, 5])).all()
        np.testing.assert_allclose(np.ptp(values, axis=0), [2, 3], rtol=0.1)

    def test_step_sizes_follow_sigma0_whatever_the_bounds_are(self):
        """The first generations of an ES in a box of two widths: around `x0`, as far in both directions."""
        optimizer = jedax.Optimizer(
            x0=[0, 0], sigma0=[0.5, 2], bounds=([-1000, -50], [1000, 50]), population=64, evaluations=6400
        )
        for _ in range(3):
            asked = optimizer.ask()
            np.testing.assert_allclose(asked.std(axis=0), [0.5, 2], rtol=0.5)
            optimizer.tell(asked, np.random.default_rng(0).normal(size=64))

    def test_bounds_rounded_to_float32_lie_inside(self):
        bounds = [-0.1] * 2, [0.1] * 2
        corners = np.float32([[0.1, 0.1], [-0.1, 0.1]])
        optimizer = jedax.Optimizer(bounds=bounds, initial=corners)
        np.testing.assert_array_equal(optimizer.ask()[:2], corners.astype(float).round(7))
        optimizer.add(corners[:1], [1.0])
        np.testing.assert_array_equal(optimizer.best.genotype, [0.1, 0.1])
        with pytest.raises(jedax.JedaxError, match=r"expected a finite number from -0\.1 to 0\.1, got 0\.1000"):
            optimizer.add(np.nextafter(corners, np.float32(1)), [1.0, 1.0])

    def test_a_solution_outside(self):
        optimizer = make(bounds=(-1, 1))
        with pytest.raises(jedax.JedaxError, match=r"x2: expected a finite number from -1.0 to 1.0, got 1.5"):
            optimizer.tell([[0] * 6, [0, 0, 1.5, 0, 0, 0]], *simulate(np.zeros((2, 6))))
        assert optimizer.evaluations == 0

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"bounds": (1, 0)}, "parameter 0: expected low below high, got low=1.0, high=0.0"),
            ({"bounds": ([0] * 6, [1] * 5)}, "bounds: expected 6 highs, got 5 highs for 6 parameters"),
            ({"bounds": 5}, r"bounds: expected \(lows, highs\), or a list of tuples \(low, high\), got 5"),
            ({"bounds": [[0, 1, 2]] * 6}, r"bounds: expected \(lows, highs\), or a list of tuples"),
            ({"bounds": (0, 1), "x0": [2] * 6}, "parameter 0: expected a start from 0.0 to 1.0, got 2"),
            ({"x0": [0] * 5}, "num_params: expected 5, as many as x0 has, got 6"),
            ({"x0": [0] * 6, "sigma0": 0}, "sigma0: expected numbers above 0, got 0"),
            ({"x0": "abc"}, "x0: expected a finite number"),
            ({"x0": [0] * 6, "sigma0": [1, 2]}, "sigma0: expected 1 or 6 numbers, got 2"),
            ({"num_params": None, "sigma0": 1}, "num_params: expected the number of parameters, got None"),
            ({"num_params": None, "bounds": (0, 1)}, "num_params: expected a number of at least 1, got none"),
        ],
    )
    def test_bad_input(self, changes, message):
        with pytest.raises(jedax.JedaxError, match=message):
            make(**changes)


class TestStart:
    def test_x0_is_first_and_others_are_normal_around_it(self):
        """Kolmogorov and Smirnov, for each parameter and all together."""
        x0, sigma0 = np.array([1.0, -2, 3, 0, 0, 10]), np.array([1.0, 0.1, 10, 3, 1, 0.5])
        values = make(x0=x0, sigma0=sigma0).ask(300)
        np.testing.assert_array_equal(values[0], x0)
        scaled = (values[1:] - x0) / sigma0
        assert stats.kstest(scaled.ravel(), "norm").pvalue > 1e-4
        assert all(stats.kstest(column, "norm").pvalue > 1e-4 for column in scaled.T)

    def test_searches_from_other_starts_share_programs(self):
        """And find what they find alone."""
        starts = (np.full(6, 0.1), 0.2, (0, 1)), (np.full(6, 30.0), 5.0, ([-1] * 6, 100)), (np.ones(6), 0.2, (0, 1))

        def found(start):
            optimizer = drive(make(**dict(zip(("x0", "sigma0", "bounds"), start, strict=True))), 3)
            return optimizer, np.asarray(optimizer.ask())

        together = [found(start) for start in starts]
        assert len({id(optimizer._steps.programs._compiled) for optimizer, _ in together}) == 1
        for start, (_, x) in zip(starts, together, strict=True):
            forget_programs()
            np.testing.assert_array_equal(found(start)[1], x)

    def test_within_bounds_they_are_reflected(self):
        values = make(x0=np.full(6, 0.1), sigma0=0.2, bounds=(np.zeros(6), np.ones(6))).ask(300)
        np.testing.assert_allclose(values[0], 0.1, rtol=1e-15)
        normal = np.random.default_rng(0).normal(0.1, 0.2, 100_000)
        assert stats.ks_2samp(values[1:].ravel(), np.abs(normal)).pvalue > 1e-4

    def test_without_sigma0_it_is_a_share_of_the_bounds(self):
        values = make(x0=np.full(6, 50.0), bounds=(0, 100)).ask(300)
        normal = np.random.default_rng(0).normal(50, 30, 100_000)
        reflected = 100 - np.abs(100 - np.abs(normal))
        assert stats.ks_2samp(values[1:].ravel(), reflected).pvalue > 1e-4
        assert make(x0=np.zeros(6)).ask(300)[1:].std() == pytest.approx(1, abs=0.05)

    def test_sigma0_alone(self):
        values = make(sigma0=0.01).ask(300)
        assert values.std() == pytest.approx(0.01, rel=0.1)
        values = make(sigma0=0.01, bounds=(4, 8)).ask(300)
        assert values.mean() == pytest.approx(6, abs=0.01)
        assert values.std() == pytest.approx(0.01, rel=0.1)

    def test_it_says_the_number_of_parameters(self):
        assert jedax.Optimizer(x0=[1.0, 2.0], evaluations=100).ask().shape[1] == 2
        assert jedax.Optimizer(bounds=([0, 0, 0], [1, 1, 2]), evaluations=100).ask().shape[1] == 3


class TestDescriptors:
    def test_none_make_it_an_evolution_strategy(self):
        optimizer = make({}, descriptor_bounds=None, evaluations=600)
        assert optimizer.cells.num_cells == 1
        while not optimizer.done:
            genotypes = optimizer.ask()
            optimizer.tell(genotypes, simulate(genotypes)[0])
        assert optimizer.best.fitness > -1e-3
        assert optimizer.repertoire.fitness.shape == (1,)
        with pytest.raises(jedax.JedaxError, match="descriptors: expected None, as Optimizer has no descriptor_bounds"):
            optimizer.tell(genotypes, *simulate(genotypes))

    def test_none_with_a_grid(self):
        assert make(MAPS, descriptor_bounds=None, dims=(4, 4)).cells.num_cells == 1

    @pytest.mark.parametrize("settings", [JEDI_X, {}], ids=["jedi-x", "defaults"])
    def test_measured(self, settings):
        """Of the first generation, with a tenth of the range on each side."""
        optimizer = make(settings, descriptor_bounds="measure")
        genotypes = optimizer.ask()
        fitness, descriptors = simulate(genotypes)
        descriptors *= [1000, 0.001]
        for row in np.random.default_rng(0).permutation(len(genotypes)):
            optimizer.tell(genotypes[row : row + 1], fitness[row : row + 1], descriptors[row : row + 1])
        low, high = descriptors.min(axis=0), descriptors.max(axis=0)
        expected = low - 0.1 * (high - low), high + 0.1 * (high - low)
        np.testing.assert_allclose(optimizer.cells.bounds, expected, rtol=1e-12)
        assert int(optimizer.repertoire.num_outside) == 0
        assert optimizer.cells.num_cells == optimizer.config.cells
        step(optimizer)
        np.testing.assert_allclose(optimizer.cells.bounds, expected, rtol=1e-12)

    def test_measured_without_those_that_failed(self):
        optimizer = make(MAPS, descriptor_bounds="measure")
        genotypes = optimizer.ask()
        fitness, descriptors = simulate(genotypes)
        optimizer.tell(genotypes[:1], [0.0], [[np.nan, 99.0]])
        optimizer.tell(genotypes[1:], fitness[1:], descriptors[1:])
        step(optimizer)
        assert max(optimizer.cells.bounds[1]) < 1.3

    def test_of_a_large_first_batch(self):
        optimizer = make({}, descriptor_bounds="measure")
        genotypes = optimizer.ask(30)
        optimizer.tell(genotypes, *simulate(genotypes))
        step(optimizer)
        assert optimizer.config.population == 32 == len(optimizer.ask())

    def test_another_number_of_descriptors(self):
        optimizer = make(MAPS, descriptor_bounds="measure")
        genotypes = optimizer.ask()
        fitness, descriptors = simulate(genotypes)
        optimizer.tell(genotypes[:2], fitness[:2], descriptors[:2])
        with pytest.raises(jedax.JedaxError, match=r"descriptors: expected shape \(6, 2\), got \(6, 3\)"):
            optimizer.tell(genotypes[2:], fitness[2:], np.ones((6, 3)))
        assert optimizer.evaluations == 2
        optimizer.tell(genotypes[2:], fitness[2:], descriptors[2:])
        assert optimizer.evaluations == 8

    def test_of_solutions_that_are_known(self):
        optimizer = make(MAPS, descriptor_bounds="measure")
        known = np.random.default_rng(0).uniform(-1, 1, (8, 6))
        optimizer.add(known, *simulate(known))
        assert optimizer.ask().shape == (8, 6)
        assert len(optimizer.cells.bounds[0]) == 2

    @pytest.mark.parametrize("has_descriptors", [False, True])
    def test_after_a_first_generation_that_failed(self, has_descriptors):
        """All of it, three times each; failures may come without descriptors."""
        optimizer = make(MAPS, descriptor_bounds="measure")
        for _ in range(5):
            genotypes = optimizer.ask()
            lost = np.full((len(genotypes), 2), np.nan) if has_descriptors else None
            optimizer.tell(genotypes, np.full(len(genotypes), np.nan), lost)
        assert optimizer.evaluations > 8
        genotypes = optimizer.ask()
        fitness, descriptors = simulate(genotypes)
        optimizer.tell(genotypes, fitness, 100 + descriptors)
        step(optimizer)
        low = 100 + descriptors.min(axis=0)
        np.testing.assert_allclose(optimizer.cells.bounds[0], low - 0.1 * np.ptp(descriptors, axis=0), rtol=1e-6)

    def test_failures_spend_the_budget(self):
        optimizer = make(MAPS, descriptor_bounds="measure", evaluations=16)
        for _ in range(40):
            if optimizer.done:
                break
            genotypes = optimizer.ask()
            optimizer.tell(genotypes, np.full(len(genotypes), np.nan))
        assert optimizer.done

    def test_nothing_to_measure(self):
        optimizer = make(MAPS, descriptor_bounds="measure")
        genotypes = optimizer.ask()
        message = "descriptor 1 is the same in the whole first generation, .* they are 1.5 and 4.5. Begin again with"
        with pytest.warns(UserWarning, match=message):
            optimizer.tell(genotypes, np.zeros(8), np.column_stack([np.arange(8.0), np.full(8, 3.0)]))
        np.testing.assert_allclose(optimizer.cells.bounds, ([-0.7, 1.5], [7.7, 4.5]))
        assert len(optimizer.ask()) == 8

    def test_cells_do_not_depend_on_units(self):
        """Milliseconds beside newtons: the same cells of the same solutions."""
        scale = np.array([1e-3, 1e4])
        plain, scaled = make(seed=5), make(seed=5, descriptor_bounds=(-scale, scale))
        for _ in range(4):
            genotypes = step(plain)
            fitness, descriptors = simulate(genotypes)
            scaled.tell(scaled.ask(), fitness, descriptors * scale)
        np.testing.assert_array_equal(scaled.repertoire.counts, plain.repertoire.counts)
        assert BOUNDS == ([-1.0, -1.0], [1.0, 1.0])


def test_bounds_of_a_loaded_search(tmp_path):
    optimizer = drive(make(MAPS, bounds=(np.zeros(6), np.full(6, 2.0))), 2)
    optimizer.save(tmp_path / "saved")
    loaded = jedax.Optimizer.load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.ask(), optimizer.ask())
    assert (loaded.ask(100) <= 2).all()


STARTED = {"gain": Real(0.1, 400, log=True, start=100.0), "teeth": Integer(8, 60, start=20)}


def test_a_search_begins_where_the_parameters_say(tmp_path):
    first, second = jedax.Optimizer(space=STARTED, evaluations=400).ask()[:2]
    assert (first["gain"], first["teeth"]) == (pytest.approx(100), 20)
    assert (second["gain"], second["teeth"]) != (pytest.approx(100), 20)
    mine = {"gain": 3.0, "teeth": 9}
    assert jedax.Optimizer(space=STARTED, evaluations=400, x0=mine).ask()[0] == pytest.approx(mine)
    within = jedax.Optimizer(space={**STARTED, "free": Real(0, 1)}, evaluations=400).ask()[0]
    assert within == pytest.approx({"gain": 100, "teeth": 20, "free": 0.5})


def test_a_run_begins_there_too(tmp_path):
    class Gears(Task):
        """Gears with a start."""

        name, num_params, descriptor_bounds, space = "gears", 2, ((0.0,), (1.0,)), Space(**STARTED)

        def init(self, key):
            return self.space.draw(key)

        def evaluate(self, key, genotype):
            return jedax.Evaluation(-genotype.sum(), genotype[:1])

    jedax.run("map-elites", Gears(), evaluations=16, offspring=8, cells=4, out=tmp_path / "run")
    (start,) = Gears.space.values(np.load(tmp_path / "run" / "start_genotypes.npy"))
    np.testing.assert_allclose(start, [100, 20])


def test_solutions_to_begin_with_in_odd_shapes():
    assert len(jedax.Optimizer(space=STARTED, evaluations=400, initial=[]).ask()) > 1
    for space in (None, STARTED):
        with pytest.raises(jedax.JedaxError, match=r"^initial: expected"):
            jedax.Optimizer(None if space else 2, space=space, evaluations=400, initial=[[1.0, 2.0], [3.0]])


def test_searches_that_differ_in_numbers_alone_have_the_same_programs(monkeypatch):
    """Else each new start of `minimize` would be compiled anew, which takes several seconds."""
    compile_, texts = Programs._compile, []

    def watch(self, function, args, donate):
        texts[-1].append(jax.jit(function).lower(*args).as_text())
        return compile_(self, function, args, donate)

    monkeypatch.setattr(Programs, "_compile", watch)
    for x0, high, box in (0.5, 1.0, ([-1, -1], [1, 1])), (-0.25, 2.0, ([-1, 0], [3, 1])), (0.5, 1.0, "measure"):
        texts.append([])
        optimizer = make(MAPS, descriptor_bounds=box, x0=[x0] * 6, bounds=([-1] * 6, [high] * 6))
        for _ in range(2):
            genotypes = optimizer.ask()
            assert genotypes.max() <= high
            optimizer.tell(genotypes, -np.abs(genotypes - 5).sum(axis=1), genotypes[:, :2])
    assert len(texts[0]) == 4  # draw, init, ask, tell
    assert texts[0] == texts[1] == texts[2]
