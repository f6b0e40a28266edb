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
from pydantic import Field

from jedax.methods.base import GLOBAL_TABLE, Method, MethodConfig, Preset, cpu_preset
from jedax.repertoire import Repertoire
from jedax.settings import Count, NotNegative
from jedax.types import Array, Evaluation, Float, Insertion, Int, PRNGKeyArray
from jedax.variation import iso_line

LARGE_POLICIES = {"offspring": 1024, "iso_sigma": 0.005, "line_sigma": 0.05}
"""Variation of large policies in the paper's table."""


class MapElitesConfig(MethodConfig):
    """Settings of MAP-Elites."""

    offspring: Count = Field(default=64, description="Solutions per generation.")
    iso_sigma: NotNegative = Field(
        default=0.2, description="Standard deviation of the isotropic noise, in the units of a genotype."
    )
    line_sigma: NotNegative = Field(
        default=0.0,
        description="Standard deviation of the step along the line to a second parent, in lengths of that line.",
    )

    @property
    def batch(self) -> int:
        """Solutions of one generation."""
        return self.offspring


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MapElitesState:
    """State of a search between two generations."""

    repertoire: Repertoire
    generation: Int[Array, ""]


class MapElites(Method):
    """MAP-Elites: parents are drawn uniformly from the filled cells and varied."""

    config: MapElitesConfig
    Config = MapElitesConfig
    name = "map-elites"
    summary = "MAP-Elites with the iso+line variation."
    presets = {"paper": Preset(GLOBAL_TABLE), "cpu": cpu_preset(offspring=64)}
    large_policies = LARGE_POLICIES

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
        self, key: PRNGKeyArray, state: MapElitesState, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[MapElitesState, Insertion]:
        """Add the offspring to the repertoire."""
        repertoire, insertion = self.store(state, genotypes, evaluation)
        return MapElitesState(repertoire, state.generation + 1), insertion
