"""Define a search method, hill climbers that restart from elites: `python examples/own_method.py`, or in this
folder `jedax run maze-a --method own_method:Climbers --evaluations 50000`.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from pydantic import Field

import jedax


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """State of the search: repertoire, number of generations, position and fitness of each climber."""

    repertoire: jedax.Repertoire
    generation: jax.Array
    places: jax.Array  # (climbers, params)
    fitness: jax.Array  # (climbers,)


class Climbers(jedax.Method):
    """Each climber samples near its position and moves if fitness improves; otherwise it restarts from an elite."""

    summary = "Hill climbers that start from elites."

    class Config(jedax.MethodConfig):
        """Settings."""

        batch: int = Field(default=64, ge=1, description="Number of climbers, one solution each per generation.")
        step: float = Field(default=0.1, gt=0, description="Standard deviation of a step.")

    def init(self, key, genotypes, evaluation):
        return State(self.begin_repertoire(genotypes, evaluation), jnp.int32(0), genotypes, evaluation.fitness_or_worst)

    def ask(self, key, state):
        return state.places + self.config.step * jax.random.normal(key, state.places.shape), state

    def tell(self, key, state, genotypes, evaluation):
        repertoire, insertion = self.store(state, genotypes, evaluation)
        better = evaluation.fitness_or_worst > state.fitness
        elites = repertoire.sample(key, self.batch)
        places = jnp.where(better[:, None], genotypes, elites)
        fitness = jnp.where(better, evaluation.fitness_or_worst, -jnp.inf)
        state = State(repertoire, state.generation + 1, places, fitness)
        return state, insertion


def main(evaluations=20_000, out=None):
    run = jedax.run(Climbers, "arm", evaluations=evaluations, step=0.2, out=out)
    print(f"best fitness {run.best().fitness:.3f}, {run.summary['coverage']:.0%} of the cells filled")


if __name__ == "__main__":
    main()
