"""The settings of JEDi-X."""

from __future__ import annotations

from typing import Literal, Self

import jax.numpy as jnp
from pydantic import Field, model_validator

from jedax.errors import JedaxError, fail
from jedax.methods.base import WithPool
from jedax.settings import MOST, Count, NotNegative, Positive, Range, Share
from jedax.types import Array, Float, PRNGKeyArray
from jedax.variation import log_uniform


class JediXConfig(WithPool):
    """Settings of JEDi-X."""

    step_size: Positive | None = Field(
        default=None,
        description="Initial step size of every ES but the bold ones of a race, in the units of the parameters; "
        "default: first_step and step_range.",
    )
    first_step: Positive = Field(
        default=0.15,
        description="Initial step size of the first ES, in units of the spread of random genotypes.",
    )
    restart_step: Positive | None = Field(
        default=None,
        description="Initial step size of restarts from random genotypes, in the same units; default: first_step.",
    )
    step_range: Range = Field(
        default=(0.01, 1.0),
        description="Range of the initial step size of other ES, drawn log-uniformly at each start, in the same units. "
        "Not used in a race.",
    )
    growth: Count = Field(
        default=1,
        description="Restarts have populations up to this many times larger, in turn with small ones; 1: none grows.",
    )
    optimum_radius: NotNegative = Field(
        default=0.01,
        description="Where populations grow, an ES restarts within this distance of an optimum that is known, in units "
        "of the spread of random genotypes. Not used in a race.",
    )
    rediscovery: Share = Field(
        default=0.9,
        description="After k restarts at known optima pool and scouts get at most this share to the power of k of the "
        "generations, until the best solution improves. Not used in a race.",
    )
    exploration: Share = Field(
        default=1.0,
        description="Largest share of generations that vary elites while the pool waits, unless known optima raise it "
        "(rediscovery); scouts get a part of the rest. In a race: the share that varies elites.",
    )
    head_start: NotNegative = Field(
        default=100.0,
        description="The share of variation is at least exploration * exp(-generation / head_start); 0: there is no "
        "least share. Not used in a race.",
    )
    population: int = Field(default=64, ge=2, le=MOST, description="Solutions per ES and generation (lambda).")
    pool: Count = Field(default=2, description="Number of ES that maximise fitness, each started from an elite.")
    patience: Count = Field(
        default=60,
        description="An ES restarts after this many of its generations without a better solution; in a race it goes on "
        "with half the step after so many without a gain.",
    )
    trial: int = Field(
        default=0,
        ge=0,
        le=MOST,
        description="Age, in generations, at which a rival of the ES is first compared with it (see `jedax.es.race`); "
        "0: no such race.",
    )
    starts: Count = Field(
        default=1,
        description="Number of ES from random genotypes that make `trial` generations each before a race begins; the "
        "one with the best prospect leads.",
    )
    refinements: int = Field(
        default=2,
        ge=0,
        le=MOST,
        description="How often the ES of a race goes on with half the step.",
    )
    longest: NotNegative = Field(
        default=0.0,
        description="In a race, the largest length of the mean of an ES that is not bold, in lengths of a random "
        "genotype; 0: any length.",
    )
    bold_step: NotNegative = Field(
        default=0.0,
        description="Initial step size of a bold ES of a race, in the units of `first_step`; its mean may have any "
        "length, and PPO does not move it; 0: there are none.",
    )
    gradient_steps: int = Field(
        default=0,
        ge=0,
        le=MOST,
        description="Updates of PPO that also move the mean of an ES of a race after each of its generations, where "
        "genotypes are policies whose steps the task returns (see `jedax.rl.ppo`); 0: none.",
    )
    gradient_rate: Positive = Field(
        default=2e-4, description="Learning rate of these updates; it is halved with the step."
    )
    elites: Count = Field(
        default=32,
        description="ES restart from an elite drawn from this many of the fittest cells. Not used in a race.",
    )
    variation_share: Literal["waiting"] | Share = Field(
        default="waiting",
        description="Share of generations that vary elites; waiting: the mean share of patience the pool has used up. "
        "Not used in a race.",
    )
    scout_share: Share = Field(
        default=0.5,
        description="Share of the other generations given to scouts, times the share of patience used up; in a race "
        "the share of them that the rival gets until it is promising.",
    )
    scouts: Count = Field(
        default=4,
        description="Number of small ES (scouts), started from random elites, that share one generation; fewer where "
        "its solutions cannot be shared equally among so many.",
    )
    scout_patience: Count = Field(
        default=3,
        description="A scout restarts after this many of its generations that add nothing to the repertoire. "
        "Not used in a race.",
    )
    line_share: Share = Field(
        default=0.75, description="Share of varied elites that are recombined with another elite."
    )
    intermediate_share: Share = Field(
        default=0.5,
        description="Share of recombined elites with a separate step per parameter; the rest step along the line.",
    )
    line: tuple[Positive, Positive] = Field(
        default=(0.01, 0.5),
        description="Standard deviations of recombination: of the isotropic noise, in units of the spread of random "
        "genotypes, and of the step, in lengths of the line.",
    )
    variation: Range = Field(
        default=(0.1, 3.0),
        description="Range of the standard deviation of all other variation, drawn log-uniformly, in units of the "
        "spread of random genotypes.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.trial and (self.pool, self.scouts, self.growth) != (1, 1, 1):
            raise fail(
                "trial",
                expected="0 unless pool, scouts and growth are 1",
                received=self.trial,
                remedy="set trial to 0, or pool, scouts and growth to 1: in a race one rival faces one ES",
            )
        if self.trial and (self.exploration == 1 or self.variation_share != "waiting"):
            raise fail(
                "trial",
                expected="0 unless exploration is below 1 and variation_share is 'waiting'",
                received=self.trial,
                remedy="set exploration to the share of generations that vary elites, such as 0.05",
            )
        return self

    @property
    def num_scouts(self) -> int:
        """The most scouts, up to `scouts`, that can share a generation equally, with at least two solutions each."""
        most = min(self.scouts, self.batch // 2)
        return next(number for number in range(most, 0, -1) if number == 1 or self._can_share(number))

    def _can_share(self, number: int) -> bool:
        """Return whether a number of ES can have equal shares of a generation as their populations."""
        if self.batch % number:
            return False
        try:
            self.make_strategy(self.batch // number, step_size=1.0)
        except JedaxError:  # some strategies need even populations
            return False
        return True

    def first_unit(self, spread: Float[Array, ""]) -> Float[Array, ""]:
        """Return the initial step size of the first ES, for the spread of random genotypes."""
        return spread * self.first_step if self.step_size is None else jnp.asarray(self.step_size, spread.dtype)

    def restart_unit(self, spread: Float[Array, ""]) -> Float[Array, ""]:
        """Return the initial step size of ES that restart from random genotypes, for their spread."""
        if self.restart_step is None or self.step_size is not None:
            return self.first_unit(spread)
        return spread * self.restart_step

    def units(self, key: PRNGKeyArray, number: int, spread: Float[Array, ""]) -> Float[Array, " number"]:
        """Return initial step sizes of a number of other ES."""
        if self.step_size is not None:
            return jnp.full(number, self.step_size, spread.dtype)
        return spread * log_uniform(key, jnp.zeros(number), self.step_range)
