"""Evolution strategies: the inner optimiser of JEDi, and a baseline of its own.

Importing this package imports neither JAX nor evosax: the names of `__all__` that need them are loaded when
they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jedax.errors import check_choice

if TYPE_CHECKING:
    from jedax.es.base import Strategy
    from jedax.es.evosax_adapter import EvosaxStrategy
    from jedax.es.lm_ma_es import LMMAES
    from jedax.es.sep_cma_es import SepCMAES

__all__ = [
    "LMMAES",
    "EvosaxStrategy",
    "SepCMAES",
    "Strategy",
    "check_strategy_name",
    "make_strategy",
    "strategy_names",
]

_MODULES = {
    "EvosaxStrategy": "evosax_adapter",
    "LMMAES": "lm_ma_es",
    "SepCMAES": "sep_cma_es",
    "Strategy": "base",
}
_OWN = {"sep-cma-es": "SepCMAES", "lm-ma-es": "LMMAES"}
_EVOSAX = "evosax:"


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def strategy_names() -> tuple[str, ...]:
    """Return every name that `make_strategy` knows: jedax's own, then "evosax:<Name>"; imports evosax."""
    from jedax.es.evosax_adapter import evosax_names

    return (*_OWN, *(_EVOSAX + name for name in evosax_names()))


def check_strategy_name(name: str) -> str:
    """Return `name` if `make_strategy` knows it; imports nothing heavy for jedax's own strategies.

    Raises:
        JedaxError: It is unknown; the message offers the nearest names.
    """
    if name in _OWN:
        return name
    return check_choice("es", name, strategy_names())


def make_strategy(name: str, *, population: int, step_size: float = 0.05, elite_ratio: float = 0.5) -> Strategy:
    """Make an evolution strategy from its name.

    Args:
        name: "sep-cma-es" (Ros & Hansen, 2008), "lm-ma-es" (Loshchilov et al., 2017), or "evosax:<Name>" for
            an algorithm of evosax, such as "evosax:SNES".
        population: Solutions per generation, at least 2.
        step_size: Standard deviation of the first samples, above 0.
        elite_ratio: Share of the population that is recombined, in (0, 1].

    Raises:
        JedaxError: The name is unknown or a setting is out of its range.
    """
    check_strategy_name(name)
    settings: dict[str, Any] = {
        "population": population,
        "step_size": step_size,
        "elite_ratio": elite_ratio,
    }
    if name in _OWN:
        return __getattr__(_OWN[name])(**settings)
    return __getattr__("EvosaxStrategy")(name=name.removeprefix(_EVOSAX), **settings)
