"""Tasks as users write them, found by their names."""

from dataclasses import dataclass

import jax
from pydantic import Field

import jedax
from jedax.tasks import Maze, Sphere, Task, TaskConfig, TaskEntry
from jedax.tasks.functions.settings import FunctionConfig


class Bump(Task):
    """No settings."""

    name = "bump"
    num_params = 3
    descriptor_bounds = ((0.0, 0.0), (1.0, 1.0))
    default_evaluations = 48

    def init(self, key):
        return jax.random.uniform(key, (self.num_params,))

    def evaluate(self, key, genotype):
        return jedax.Evaluation(-((genotype - 0.5) ** 2).sum(), genotype[:2])


@dataclass(frozen=True)
class Weighted(Bump):
    """A dataclass with a parameter."""

    weight: float = 1.0

    def evaluate(self, key, genotype):
        return jedax.Evaluation(-self.weight * ((genotype - 0.5) ** 2).sum(), genotype[:2])


class Peak(jedax.tasks.ConfiguredTask):
    """Settings of its own."""

    class Config(TaskConfig):
        size: int = Field(default=3, ge=2, description="Length of a genotype.")
        height: float = 0.0
        evaluations: int = 64

    name = "peak"
    descriptor_bounds = ((0.0, 0.0), (1.0, 1.0))

    @property
    def num_params(self):
        return self.config.size

    def init(self, key):
        return jax.random.uniform(key, (self.num_params,))

    def evaluate(self, key, genotype):
        return jedax.Evaluation(self.config.height - ((genotype - 0.5) ** 2).sum(), genotype[:2])


class Wide(FunctionConfig):
    width: float = 1.0


class WideSphere(Sphere):
    """A subclass of a task of jedax, with more settings."""

    Config = Wide


BUMP = Weighted(weight=2.0)
PEAK = Peak(size=4)
TRAP = Maze(name="trap", walls=[(0.1, 0.5, 0.9, 0.5)], steps=20)
ENTRY = TaskEntry("peak", "A peak.", Peak.Config, f"{__name__}:Peak", large_policies=True, small_budget=128)


def simulate(genotypes):
    return -(genotypes**2).sum(axis=1), genotypes[:, :2]


simulate.num_params = 3
simulate.descriptor_lows = (-1.0, -1.0)
simulate.descriptor_highs = (1.0, 1.0)
