"""Evolution strategies: the inner optimisers of JEDi and its relatives, and a baseline on their own."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

from jedax.errors import NotImportableError, check_choice, fail
from jedax.es.base import Strategy
from jedax.imports import entry_points, is_custom, lazy_names, subclasses_in
from jedax.settings import resolve

if TYPE_CHECKING:
    from jedax.es.cma_es import CMAES
    from jedax.es.evosax_adapter import EvosaxStrategy
    from jedax.es.lm_ma_es import LMMAES
    from jedax.es.sep_cma_es import SepCMAES

__all__ = [
    "CMAES",
    "LMMAES",
    "EvosaxStrategy",
    "SepCMAES",
    "Strategy",
    "check_strategy",
    "make_strategy",
    "strategy_names",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "CMAES": "jedax.es.cma_es",
        "EvosaxStrategy": "jedax.es.evosax_adapter",
        "LMMAES": "jedax.es.lm_ma_es",
        "SepCMAES": "jedax.es.sep_cma_es",
    },
)

_EVOSAX = "evosax:"
_GROUP = "jedax.strategies"


@functools.cache
def _own() -> dict[str, type]:
    return subclasses_in(__name__, Strategy)


def strategy_names() -> tuple[str, ...]:
    """Return every name that works here: jedax's own, those of installed packages, and, with evosax, `evosax:NAME`."""
    names = [*_own(), *entry_points(_GROUP)]
    with contextlib.suppress(NotImportableError):
        names += _evosax_names()
    return tuple(names)


def _evosax_names() -> list[str]:
    from jedax.es.evosax_adapter import evosax_names

    return [_EVOSAX + name for name in evosax_names()]


def check_strategy(es: Any) -> Any:
    """Return `es` if `make_strategy` accepts it.

    Raises:
        JedaxError: It is an unknown name, cannot be imported, or is not a class derived from `Strategy`.
    """
    if isinstance(es, str) and es.startswith(_EVOSAX):
        return check_choice("es", es, _evosax_names())
    if is_custom(es):
        return es  # refused when it is needed, so that the settings of an earlier run can be read
    _class_of(es)
    return es


def _class_of(es: Any) -> type[Strategy]:
    """Return the class of a strategy given by name or as a class."""
    if isinstance(es, str) and es in _own():
        return _own()[es]
    if isinstance(es, str) and es in entry_points(_GROUP):
        es = entry_points(_GROUP)[es].load()
    elif isinstance(es, str) and ":" not in es:
        check_choice("es", es, [*_own(), *entry_points(_GROUP), "evosax:NAME", "module:Class"])
    else:
        es = resolve("es", es)
    if not (isinstance(es, type) and issubclass(es, Strategy)):
        raise fail("es", expected="a class derived from jedax.es.Strategy", received=repr(es), remedy="give the class")
    if missing := sorted(es.__abstractmethods__):
        expected, remedy = "a class with init, ask, tell and mean", f"define {' and '.join(missing)}"
        raise fail("es", expected=expected, received=f"{es.__name__}, which lacks some", remedy=remedy)
    return es


def make_strategy(es: Any, *, population: int, step_size: float = 0.05, elite_ratio: float = 0.5) -> Strategy:
    """Make an evolution strategy.

    Args:
        es: "sep-cma-es" (Ros & Hansen, 2008), "cma-es" (Hansen, 2023), "lm-ma-es" (Loshchilov et al., 2017),
            "evosax:NAME" such as "evosax:SNES", "module:Class", a name that an installed package has registered, or a
            class derived from `Strategy`, which is called with the other arguments.
        population: Solutions per generation, at least 2.
        step_size: Standard deviation of the first samples, above 0.
        elite_ratio: Share of the population used in recombination, in (0, 1].

    Raises:
        JedaxError: The name is unknown, or a setting is out of its range.
    """
    settings: dict[str, Any] = {"population": population, "step_size": step_size, "elite_ratio": elite_ratio}
    if isinstance(es, str) and es.startswith(_EVOSAX):
        from jedax.es.evosax_adapter import EvosaxStrategy

        return EvosaxStrategy(name=es.removeprefix(_EVOSAX), **settings)
    return _class_of(es)(**settings)
