"""A method, an evolution strategy, a ranker, a rule and a task that do not come with jedax."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from pydantic import Field, field_validator

import jedax
from jedax.errors import fail
from jedax.es import Strategy
from jedax.methods.base import Preset
from jedax.repertoire import Acceptance
from jedax.tasks import Task


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DriftState:
    """State of `Drift`."""

    repertoire: jedax.Repertoire
    generation: jax.Array
    centre: jax.Array
    scale: jax.Array
    num_moves: jax.Array


class Drift(jedax.Method):
    """Solutions around a centre, which moves to a random elite at the start of each loop."""

    summary = "Samples around an elite, another one in each loop."
    presets = {
        "wide": Preset("large steps", {"step": 0.5}),
        "narrow": Preset("small steps", {"step": 0.05}),
    }

    class Config(jedax.MethodConfig):
        """Settings of `Drift`."""

        batch: int = Field(default=8, ge=1, description="Solutions of one generation.")
        step: float = Field(default=0.3, gt=0, description="Standard deviation around the centre.")
        loop: int = Field(default=4, ge=1, description="Generations of one loop.")
        note: str = Field(default="see: here", description="A text with a colon, which is no object.")
        powers: tuple[int, ...] = Field(default=(1,), description="Steps are multiplied by these powers of 2 in turn.")

        @field_validator("powers")
        @classmethod
        def _check_powers(cls, powers: Any) -> Any:
            if not powers:
                raise fail("powers", expected="one or more", received=powers, remedy="name one")
            return powers

    @property
    def generations_per_loop(self):
        return self.config.loop

    def init(self, key, genotypes, evaluation):
        repertoire = self.begin_repertoire(genotypes, evaluation)
        return DriftState(repertoire, jnp.int32(0), genotypes[0], jnp.float32(1), jnp.int32(0))

    def start_loop(self, key, state, progress, prediction=None):
        powers = jnp.asarray(self.config.powers)
        scale = 2.0 ** powers[state.num_moves % len(powers)] * (1 - progress)
        centre = state.repertoire.sample(key, 1)[0]
        return replace(state, centre=centre, scale=scale, num_moves=state.num_moves + 1)

    def ask(self, key, state):
        noise = jax.random.normal(key, (self.batch, *state.centre.shape))
        return state.centre + self.config.step * state.scale * noise, state

    def tell(self, key, state, genotypes, evaluation):
        repertoire, insertion = self.store(state, genotypes, evaluation)
        return replace(state, repertoire=repertoire, generation=state.generation + 1), insertion

    def loop_record(self, state):
        return {"scale": state.scale}

    def metrics(self, state):
        return {"num_moves": state.num_moves}

    def lead(self):
        return "Drift walked from elite to elite."

    def describe_search(self, solution, place):
        return f"Drift tried {self.config.loop} generations of every {solution} around one elite."

    def glossary(self):
        return [("drift", "A walk from elite to elite.")]


class Spherical(Strategy):
    """An evolution strategy whose mean is that of its elites, with a step size that falls."""

    def init(self, key, mean):
        return mean, jnp.float32(self.step_size)

    def ask(self, key, state):
        mean, step = state
        return mean + step * jax.random.normal(key, (self.population, *mean.shape)), state

    def tell(self, key, state, genotypes, scores):
        best = jnp.argsort(-jnp.where(jnp.isfinite(scores), scores, -jnp.inf))[: self.num_elites]
        return genotypes[best].mean(axis=0), 0.98 * state[1]

    def mean(self, state):
        return state[0]


def farthest(outcome):
    """Rank by the distance of the descriptor from the middle of the box."""
    return jnp.where(outcome.evaluation.valid, jnp.abs(outcome.evaluation.descriptor).sum(axis=-1), -jnp.inf)


@dataclass(frozen=True)
class Halfway(Acceptance):
    """Thresholds that move halfway to the best accepted fitness."""

    start: float = -100.0

    def move(self, thresholds, number, total, best):
        return (thresholds + best) / 2


HALFWAY = Halfway()


class Bowl(Task):
    """The distance to a corner, with noise; the behaviour is the first two parameters."""

    name = "bowl"
    num_params = 3
    descriptor_bounds = ((-2.0, -2.0), (2.0, 2.0))
    qd_offset = -50.0
    default_evaluations = 160

    def init(self, key):
        return jax.random.normal(key, (3,))

    def evaluate(self, key, genotype):
        return jedax.Evaluation(-jnp.square(genotype - 1).sum() + 0.01 * jax.random.normal(key), genotype[:2])
