"""Names, and what importing the package costs."""

import sys

import pytest

import jedax.es
from jedax.errors import JedaxError
from jedax.es import (
    LMMAES,
    EvosaxStrategy,
    SepCMAES,
    Strategy,
    check_strategy,
    make_strategy,
    strategy_names,
)


@pytest.mark.parametrize(
    ("name", "cls"), [("sep-cma-es", SepCMAES), ("lm-ma-es", LMMAES), ("evosax:SNES", EvosaxStrategy)]
)
def test_make_strategy(name, cls):
    strategy = make_strategy(name, population=6, step_size=0.2, elite_ratio=0.4)
    assert type(strategy) is cls
    assert isinstance(strategy, Strategy)
    assert (strategy.population, strategy.step_size, strategy.elite_ratio) == (6, 0.2, 0.4)
    assert strategy == make_strategy(name, population=6, step_size=0.2, elite_ratio=0.4)


def test_defaults_are_the_papers():
    strategy = make_strategy("sep-cma-es", population=16)
    assert (strategy.step_size, strategy.elite_ratio, strategy.num_elites) == (0.05, 0.5, 8)


def test_every_name_is_known():
    names = strategy_names()
    assert {"sep-cma-es", "lm-ma-es", "evosax:LM_MA_ES", "evosax:Sep_CMA_ES", "evosax:PSO"} < set(names)
    assert len(names) == len(set(names))
    for name in names:
        assert check_strategy(name) == name
        assert make_strategy(name, population=8).population == 8


def test_without_evosax(monkeypatch):
    monkeypatch.setitem(sys.modules, "evosax.algorithms", None)
    assert set(strategy_names()) == {"sep-cma-es", "cma-es", "lm-ma-es"}
    with pytest.raises(JedaxError, match=r"expected the package evosax.algorithms, .* pip install 'jedax\[evosax\]'"):
        check_strategy("evosax:SNES")


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("sep-cmaes", "'sep-cma-es'"),
        ("lmmaes", "'lm-ma-es'"),
        ("SNES", "evosax:NAME"),
        ("evosax:OpenES", "'evosax:Open_ES'"),
        ("zzz", "choose one of"),
    ],
)
def test_unknown_names(name, offered):
    with pytest.raises(JedaxError, match=r"^es: unknown name") as caught:
        check_strategy(name)
    assert offered in str(caught.value)
    with pytest.raises(JedaxError, match=r"^(es|name): unknown name"):
        make_strategy(name, population=8)


@pytest.mark.parametrize("name", ["sep-cma-es", "lm-ma-es", "evosax:SNES"])
@pytest.mark.parametrize("population", [1, 0, -4])
def test_population_too_small(name, population):
    with pytest.raises(JedaxError, match=f"^population: expected .* got {population};"):
        make_strategy(name, population=population)


def test_names_of_the_package():
    assert set(jedax.es.__all__) == set(dir(jedax.es))
    for name in jedax.es.__all__:
        assert getattr(jedax.es, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'CMA'"):
        _ = jedax.es.CMA


class Halving(SepCMAES):
    """A strategy of a user's."""

    name = ""


def test_a_class_from_outside():
    for es in (Halving, f"{__name__}:Halving"):
        assert check_strategy(es) is es
        assert make_strategy(es, population=6, step_size=0.2) == Halving(6, 0.2)
    assert check_strategy("custom:Gone") == "custom:Gone"
    with pytest.raises(JedaxError, match=r"^es: expected an object that can be imported by name, got custom:Gone,"):
        make_strategy("custom:Gone", population=6)


@pytest.mark.parametrize(
    ("es", "message"),
    [
        (f"{__name__}:Nothing", r"^es: expected 'Nothing' in .*test_registry, got none"),
        ("no_such_module:ES", r"^es: expected a module no_such_module that can be imported"),
        (f"{__name__}:pytest", r"^es: expected a class derived from jedax.es.Strategy, got <module 'pytest'"),
        (Halving(population=4), r"^es: expected a class derived from jedax.es.Strategy, got Halving\(population=4"),
        (7, r"^es: expected a class derived from jedax.es.Strategy, got 7; give the class"),
    ],
)
def test_what_is_no_strategy(es, message):
    with pytest.raises(JedaxError, match=message):
        check_strategy(es)
