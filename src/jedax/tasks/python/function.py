"""A plain Python function, `f(genotypes) -> fitness, descriptors`, as a task."""

from __future__ import annotations

import jax

from jedax.errors import fail
from jedax.imports import load_object
from jedax.settings import Config as AnyConfig
from jedax.tasks.base import computed
from jedax.tasks.measured import HostTask
from jedax.tasks.python.settings import PythonFunctionConfig
from jedax.tasks.work import Work
from jedax.types import Array, Float, PRNGKeyArray


class PythonFunction(HostTask):
    """A function of the user's, named `module:function`, that worker processes call.

    It takes genotypes `(n, params)`, a NumPy array of float64 with at most `chunk` rows, and returns fitness `(n,)`,
    maximised, and descriptors `(n, d)`. With a `space` it takes the parameters' values `(n, parameters)` instead, or a
    list of dicts if the space names them. Results that are not finite count as failed. If the results depend on the
    genotypes alone, the same seed gives the same bits whatever the number of workers.

    Example:
        `PythonFunction(name="mine:simulate", num_params=10, descriptor_lows=(-1, -1), descriptor_highs=(1, 1))`
    """

    config: PythonFunctionConfig
    Config = PythonFunctionConfig
    num_params = computed(lambda self: self.config.length)
    space = computed(lambda self: self.config.space)
    descriptor_names = computed(lambda self: self.config.descriptor_names)

    def __init__(self, config: AnyConfig | None = None, /, **settings):
        super().__init__(config, **settings)
        if not callable(load_object(self.config.name, "task")):
            received = f"{self.config.name}, which is none"
            raise fail("task", expected="a function", received=received, remedy="name another")
        if self.config.length is None:
            raise fail(
                "num_params",
                expected="the length of a genotype",
                received="none",
                remedy="give num_params (--num-params 10), or set it as an attribute of the function",
            )

    @property
    def work(self) -> Work:
        """Calls of the function."""
        space = None if self.space is None else self.space.spec()
        settings = {"function": self.config.name, "num_descriptors": self.num_given, "space": space}
        return Work("jedax.tasks.python.calls:make", settings, self.config.chunk)

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Draw a genotype from the space; without one, normal numbers around zero with deviation `initial_std`."""
        if self.space is not None:
            return self.space.draw(key)
        return self.config.initial_std * jax.random.normal(key, (self.num_params,))
