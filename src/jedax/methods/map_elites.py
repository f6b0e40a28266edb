"""MAP-Elites with the iso+line variation.

References:
    J.-B. Mouret, J. Clune. Illuminating search spaces by mapping elites. arXiv:1504.04909, 2015.
    V. Vassiliades, J.-B. Mouret. Discovering the elite hypervolume by leveraging interspecies correlation.
    GECCO 2018, arXiv:1804.03906.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jedax.methods.base import Algorithm
from jedax.methods.settings import MapElitesConfig
from jedax.repertoire import Repertoire
from jedax.types import Array, Evaluation, Float, Insertion, Int, PRNGKeyArray
from jedax.variation import iso_line


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MapElitesState:
    """A search between two generations.

    Attributes:
        repertoire: All that was found.
        generation: Generations done.
    """

    repertoire: Repertoire
    generation: Int[Array, ""]


@dataclass(frozen=True)
class MapElites(Algorithm):
    """Parents are drawn from the filled cells, each alike, and varied along the line to a second one."""

    config: MapElitesConfig

    def init(
        self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> MapElitesState:
        """Return the state after the evaluated initial batch."""
        return MapElitesState(self.begin_repertoire(genotypes, evaluation), jnp.int32(0))

    def ask(self, key: PRNGKeyArray, state: MapElitesState) -> tuple[Float[Array, "batch params"], MapElitesState]:
        """Vary elites."""
        config = self.config
        parent_key, partner_key, vary_key = jax.random.split(key, 3)
        parents = state.repertoire.sample(parent_key, config.batch)
        partners = state.repertoire.sample(partner_key, config.batch)
        return iso_line(vary_key, parents, partners, config.iso_sigma, config.line_sigma), state

    def tell(
        self,
        key: PRNGKeyArray,
        state: MapElitesState,
        genotypes: Float[Array, "batch params"],
        evaluation: Evaluation,
    ) -> tuple[MapElitesState, Insertion]:
        """Add the offspring to the repertoire."""
        repertoire, insertion = self.store(state, genotypes, evaluation)
        return MapElitesState(repertoire, state.generation + 1), insertion
