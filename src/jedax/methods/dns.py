"""Dominated novelty search: solutions survive if they are farthest from their nearest fitter solutions.

The repertoire is passive: it stores what the population finds, so that coverage can be compared.

References:
    R. Bahlous-Boldi et al. Dominated novelty search: rethinking local competition in quality-diversity. GECCO 2025,
    arXiv:2502.00593.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from pydantic import Field

from jedax.methods.base import GLOBAL_TABLE, Method, Preset, cpu_preset
from jedax.methods.map_elites import LARGE_POLICIES, MapElitesConfig
from jedax.repertoire import Repertoire
from jedax.settings import Count
from jedax.types import Array, Evaluation, Float, Insertion, Int, PRNGKeyArray
from jedax.variation import iso_line


class DNSConfig(MapElitesConfig):
    """Settings of dominated novelty search."""

    population: Count = Field(default=1024, description="Solutions that survive a generation.")
    neighbours: Count = Field(
        default=3, description="Number of nearest fitter solutions; the mean distance to them is the dominated novelty."
    )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DNSState:
    """State of a search between two generations.

    Attributes:
        genotypes: The population; places that are not filled yet have the fitness -inf.
        fitness: Their fitness.
        descriptors: Their descriptors, in the unit box.
    """

    repertoire: Repertoire
    genotypes: Float[Array, "population params"]
    fitness: Float[Array, " population"]
    descriptors: Float[Array, "population d"]
    generation: Int[Array, ""]


class DNS(Method):
    """Dominated novelty search: MAP-Elites with a population instead of cells.

    Parents are drawn uniformly from the population and varied. Population and offspring compete: those with the largest
    dominated novelty survive.
    """

    config: DNSConfig
    Config = DNSConfig
    name = "dns"
    summary = "Dominated novelty search: those farthest from their nearest fitter solutions survive."
    presets = {
        "default": Preset(f"neighbours: arXiv:2502.00593; variation as for MAP-Elites in {GLOBAL_TABLE}"),
        "cpu": cpu_preset(offspring=64),
    }
    large_policies = LARGE_POLICIES

    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> DNSState:
        """Return the state after the evaluated initial batch."""
        size, kind = self.config.population, evaluation.fitness.dtype
        empty = DNSState(
            repertoire=self.begin_repertoire(genotypes, evaluation),
            genotypes=jnp.broadcast_to(genotypes[0], (size, genotypes.shape[1])),
            fitness=jnp.full(size, -jnp.inf, kind),
            descriptors=jnp.zeros((size, evaluation.descriptor.shape[1]), kind),
            generation=jnp.int32(0),
        )
        return self._survivors(empty, genotypes, evaluation)

    def ask(self, key: PRNGKeyArray, state: DNSState) -> tuple[Float[Array, "batch params"], DNSState]:
        """Vary members of the population."""
        config = self.config
        parent_key, partner_key, vary_key = jax.random.split(key, 3)
        alive = jnp.isfinite(state.fitness)
        share = jnp.where(alive.any(), alive / jnp.maximum(alive.sum(), 1), 1 / len(alive))
        parents, partners = (
            state.genotypes[jax.random.choice(draw, len(alive), (config.batch,), p=share)]
            for draw in (parent_key, partner_key)
        )
        return iso_line(vary_key, parents, partners, config.iso_sigma, config.line_sigma), state

    def tell(
        self, key: PRNGKeyArray, state: DNSState, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[DNSState, Insertion]:
        """Let the population and the offspring compete, and add the offspring to the repertoire."""
        repertoire, insertion = self.store(state, genotypes, evaluation)
        after = self._survivors(state, genotypes, evaluation)
        return replace(after, repertoire=repertoire, generation=state.generation + 1), insertion

    def insert(self, state: DNSState, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> DNSState:
        """Return the state after solutions that no generation asked for have competed, too."""
        return self._survivors(super().insert(state, genotypes, evaluation), genotypes, evaluation)

    def _survivors(self, state: DNSState, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> DNSState:
        """Return the state with those of population and offspring that survive; failed offspring do not."""
        valid = evaluation.valid
        fitness = jnp.concatenate([state.fitness, evaluation.achieved])
        places = self.cells.to_unit_box(evaluation.descriptor)
        descriptors = jnp.concatenate([state.descriptors, jnp.where(valid[:, None], places, 0)])
        novelty = dominated_novelty(fitness, descriptors, self.config.neighbours)
        kept = jnp.lexsort((-fitness, -novelty))[: self.config.population]  # fitness decides between equally novel ones
        everyone = jnp.concatenate([state.genotypes, genotypes])
        return replace(state, genotypes=everyone[kept], fitness=fitness[kept], descriptors=descriptors[kept])


def dominated_novelty(
    fitness: Float[Array, " n"], descriptors: Float[Array, "n d"], neighbours: int
) -> Float[Array, " n"]:
    """Return the mean distance of each solution to its nearest fitter solutions, at most `neighbours` of them.

    Of equally fit solutions the earlier one counts as fitter. The novelty is inf where no solution is fitter, and -inf
    where the fitness is -inf.
    """
    order = jnp.arange(len(fitness))

    def nearer(
        nearest: tuple[Float[Array, " n"], ...], other: tuple[Float[Array, ""], Int[Array, ""], Float[Array, " d"]]
    ) -> Any:
        """Return the squares of the least distances to fitter solutions, after one more solution."""
        its_fitness, its_order, its_descriptor = other
        is_fitter = (its_fitness > fitness) | ((its_fitness == fitness) & (its_order < order))
        square = sum((x - its_x) ** 2 for x, its_x in zip(descriptors.T, its_descriptor, strict=True))
        square, kept = jnp.where(is_fitter, square, jnp.inf), []
        for least in nearest:
            kept.append(jnp.minimum(least, square))
            square = jnp.maximum(least, square)
        return tuple(kept), None

    # A few minima kept in order, one solution after the other, are faster than sorting, and need no matrix.
    none = (jnp.full_like(fitness, jnp.inf),) * min(neighbours, len(fitness))
    nearest, _ = jax.lax.scan(nearer, none, (fitness, order, descriptors))
    distances = jnp.sqrt(jnp.stack(nearest))
    is_known = jnp.isfinite(distances)
    novelty = jnp.mean(distances, axis=0, where=is_known)
    novelty = jnp.where(is_known.any(axis=0), novelty, jnp.inf)
    return jnp.where(fitness == -jnp.inf, -jnp.inf, novelty)
