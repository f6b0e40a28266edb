"""JEDi, Quality with Just Enough Diversity: Algorithm 1 of the paper, step by step.

| line of Algorithm 1 | here |
|---|---|
| initialise the repertoire with random genomes | `JEDi.init` |
| sample n_ES behaviour targets (and learn what they promise) | `JEDi.choose_targets`, `JEDi.learn_gp` |
| update alpha | `alpha_at` |
| select the starting genome, initialise the ES centre | `JEDi.start_pool` |
| sample lambda genomes | `JEDi.ask` |
| compute scores, update theta | `JEDi.tell` (`jedax.rankers`, `jedax.es`) |
| update the repertoire | `JEDi.tell` (`jedax.repertoire`) |

`JEDi.start_loop` ties the second to the fourth of these together. The loop itself and the evaluations are in
`jedax.search`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jedax.es.pool import Pool
from jedax.gp import GPData, GPSettings, Hyperparameters, Posterior, Prediction, fit, one_by_one, posterior, predict
from jedax.methods.base import Algorithm, strategy_of
from jedax.methods.settings import JediConfig
from jedax.rankers import Outcome, weighted_target, weighted_target_fitness_score
from jedax.repertoire import Repertoire
from jedax.targets import choose_bucb, choose_pareto, choose_ucb, choose_uniform
from jedax.types import Array, Bool, Evaluation, Float, Insertion, Int, PRNGKeyArray


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class JEDiState:
    """A search between two generations.

    Attributes:
        repertoire: All that was found.
        pool: States of the ES, leading axis `pool`.
        targets: `(pool, d)`, the behaviours the ES are sent to.
        alpha: Weight of nearness to the target until the next choice.
        generation: ES generations done; the initial batch is none.
        gp: Hyperparameters of the last fit, where the next one starts.
        gp_noise_floor: Noise that the process last needed, as a share of s^2.
        gp_fitted_at: Evaluations done at the last fit; -1: there was none.
    """

    repertoire: Repertoire
    pool: Any
    targets: Float[Array, "pool descriptor"]
    alpha: Float[Array, ""]
    generation: Int[Array, ""]
    gp: Hyperparameters
    gp_noise_floor: Float[Array, ""]
    gp_fitted_at: Int[Array, ""]


@dataclass(frozen=True)
class JEDi(Algorithm):
    """The search as pure functions of a `JEDiState`; equal settings are equal objects.

    A loop of Algorithm 1 is one `start_loop` and then `config.generations` times `ask`, evaluate, `tell`.
    `start_loop` belongs outside any vmap over emitters: it learns the GP once for the whole pool.
    """

    config: JediConfig

    @functools.cached_property
    def pool(self) -> Pool:
        """The evolution strategies."""
        return Pool(strategy_of(self.config), self.config.pool)

    @property
    def generations_per_loop(self) -> int:
        """ES generations before new targets are chosen."""
        return self.config.generations

    @property
    def gp_settings(self) -> GPSettings:
        """How the Gaussian process is fitted."""
        config = self.config
        bounds = config.gp_signal_bounds, config.gp_length_scale_bounds, config.gp_noise_bounds
        signal, length_scale, noise = np.clip(config.gp_start, *np.transpose(bounds)).tolist()
        return GPSettings(
            weighted=config.gp == "weighted",
            signal_bounds=config.gp_signal_bounds,
            length_scale_bounds=config.gp_length_scale_bounds,
            noise_bounds=config.gp_noise_bounds,
            start=(signal, length_scale, noise),
            noise_floor=config.gp_noise_floor,
            max_noise_floor=config.gp_max_noise_floor,
            max_rows=config.gp_max_rows,
            max_steps=config.gp_max_steps,
            tolerance=config.gp_tolerance,
        )

    @property
    def uses_gp(self) -> bool:
        """Whether the choice of targets looks at the Gaussian process."""
        return self.config.targets != "uniform"

    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> JEDiState:
        """Initialise the repertoire with the evaluated initial batch; no targets are chosen yet."""
        config = self.config
        repertoire = self.begin_repertoire(genotypes, evaluation)
        targets = jnp.zeros((config.pool, self.cells.centroids.shape[1]))
        return JEDiState(
            repertoire=repertoire,
            pool=self.start_pool(key, repertoire, targets),
            targets=targets,
            alpha=alpha_at(config, jnp.float32(0)),
            generation=jnp.int32(0),
            gp=self.gp_settings.initial_hyperparameters(),
            gp_noise_floor=jnp.float32(config.gp_noise_floor),
            gp_fitted_at=jnp.int32(-1),
        )

    def start_loop(
        self, key: PRNGKeyArray, state: JEDiState, progress: Float[Array, ""], at: Prediction | Posterior | None = None
    ) -> JEDiState:
        """Begin a loop: choose targets, set alpha, and start an ES towards each target.

        Args:
            key: Drawn from for the targets and the ES.
            state: The search so far.
            progress: Evaluations done / budget, 0 to 1.
            at: What `learn_gp` predicts; None: it is asked here where the choice needs it.
        """
        target_key, pool_key = jax.random.split(key)
        if self.uses_gp and at is None:
            state, at = self.learn_gp(state)
        targets = self.choose_targets(target_key, at)
        alpha = alpha_at(self.config, progress)
        return replace(state, targets=targets, alpha=alpha, pool=self.start_pool(pool_key, state.repertoire, targets))

    def choose_targets(self, key: PRNGKeyArray, at: Prediction | Posterior | None) -> Float[Array, "pool descriptor"]:
        """Choose one centroid for each ES (paper, section 3.2), from what the GP predicts where that counts."""
        config, num_cells = self.config, self.cells.num_cells
        if at is None:
            index = choose_uniform(key, num_cells, config.pool)
        elif isinstance(at, Posterior):
            # What an ES will bring: all its evaluations of a loop, or one datum where counts do not matter.
            share = self.samples * config.population * config.generations if config.gp == "weighted" else 1
            index = choose_bucb(key, at, at.noise_variance / share, config.pool, beta=config.ucb_beta)
        elif config.targets == "pareto":
            index = choose_pareto(key, at.mean, at.variance, config.pool)
        else:
            index = choose_ucb(key, at.mean, at.variance, config.pool, beta=config.ucb_beta)
        return jnp.asarray(self.cells.centroids)[index]

    def learn_gp(self, state: JEDiState) -> tuple[JEDiState, Prediction | Posterior]:
        """Learn fitness over descriptors from the filled cells (paper, section 3.2 and appendix B).

        Costs what the filled cells cost, for each replica apart under `vmap`. The hyperparameters are fitted anew where
        enough cells hold a solution that is newer than the last fit (`gp_refit`), else they stay.

        Args:
            state: The search so far; the fit starts at the hyperparameters of the last one.

        Returns:
            The state that remembers the fit, and what the process predicts for all centroids, empty cells included;
            a posterior only for targets by GP-BUCB, which need covariances.
        """

        def learn(
            start: Hyperparameters, data: GPData, wanted: Bool[Array, ""]
        ) -> tuple[tuple[Hyperparameters, Float[Array, ""]], Prediction | Posterior]:
            gp = fit(self.gp_settings, start, data, wanted)
            at = (posterior if self.config.targets == "gp-bucb" else predict)(gp, self._unit_centroids)
            return (gp.hyperparameters, gp.noise_floor), at

        repertoire, data = state.repertoire, self.gp_data(state.repertoire)
        num_newer = jnp.sum(repertoire.improved_at > state.gp_fitted_at)
        wanted = num_newer > self.config.gp_refit * jnp.sum(data.mask)
        # One replica after the other: what all factors together take is not needed at once.
        (hyperparameters, noise_floor), at = one_by_one(learn)(state.gp, data, wanted)
        fitted_at = jnp.where(wanted, self.evaluations(state), state.gp_fitted_at)
        return replace(state, gp=hyperparameters, gp_noise_floor=noise_floor, gp_fitted_at=fitted_at), at

    def numbers(self, state: JEDiState) -> dict[str, Array]:
        """Return alpha and, where it guides, the last fit of the GP: scalars by the names of the metrics' columns."""
        if not self.uses_gp:
            return {"alpha": state.alpha}
        return {
            "alpha": state.alpha,
            "gp_signal": state.gp.signal,
            "gp_length_scale": state.gp.length_scale,
            "gp_noise": state.gp.noise,
            "gp_noise_floor": state.gp_noise_floor,
        }

    def ends(self, state: JEDiState, last: Evaluation) -> dict[str, Array]:
        """Return the member of each ES's last generation that scored best; NaN where all of them failed."""
        by_es = self.pool.split(last)
        alpha = jnp.broadcast_to(state.alpha, self.config.pool)
        scores = jax.vmap(weighted_target_fitness_score)(by_es, state.targets, alpha)
        best = jnp.argmax(scores, axis=1)
        each, known = jnp.arange(self.config.pool), jnp.isfinite(scores).any(axis=1)
        return {
            "descriptor": jnp.where(known[:, None], by_es.descriptor[each, best], jnp.nan),
            "fitness": jnp.where(known, by_es.fitness[each, best], jnp.nan),
        }

    def gp_data(self, repertoire: Repertoire) -> GPData:
        """Return the filled cells as the GP takes them, the real rows first."""
        row = jnp.nonzero(repertoire.filled, size=self.cells.num_cells, fill_value=0)[0]
        return GPData(
            x=self.cells.to_unit_box(self.cells.within_reach(repertoire.descriptors[row])),
            fitness=repertoire.fitness[row],
            counts=repertoire.counts[row],
            mask=jnp.arange(self.cells.num_cells) < repertoire.filled.sum(),
        )

    @property
    def _unit_centroids(self) -> Float[Array, "cells descriptor"]:
        return self.cells.to_unit_box(jnp.asarray(self.cells.centroids))

    def start_pool(self, key: PRNGKeyArray, repertoire: Repertoire, targets: Float[Array, "pool descriptor"]) -> Any:
        """Start a fresh ES at the stored solution whose descriptor is nearest to each target."""
        return self.pool.start(key, jax.vmap(repertoire.nearest)(targets))

    def ask(self, key: PRNGKeyArray, state: JEDiState) -> tuple[Float[Array, "batch params"], JEDiState]:
        """Sample one generation of every ES; the batch holds one ES after the other."""
        genotypes, pool = self.pool.ask(key, state.pool)
        return genotypes, replace(state, pool=pool)

    def tell(
        self,
        key: PRNGKeyArray,
        state: JEDiState,
        genotypes: Float[Array, "batch params"],
        evaluation: Evaluation,
    ) -> tuple[JEDiState, Insertion]:
        """Score the generation, update every ES, and add all that was evaluated to the repertoire."""
        repertoire, insertion = self.store(state, genotypes, evaluation)
        by_es = Outcome(
            evaluation=self.pool.split(evaluation),
            insertion=self.pool.split(insertion),
            aim=state.targets,
            alpha=jnp.broadcast_to(state.alpha, self.config.pool),
        )
        pool = self.pool.tell(key, state.pool, genotypes, jax.vmap(weighted_target)(by_es))
        state = replace(state, pool=pool, repertoire=repertoire, generation=state.generation + 1)
        return state, insertion


def alpha_at(config: JediConfig, progress: Float[Array, ""]) -> Float[Array, ""]:
    """Return the weight of nearness to the target: constant, or falling linearly with progress (0 to 1)."""
    if config.alpha != "decay":
        return jnp.full_like(progress, config.alpha)
    share = jnp.clip(progress, 0, 1)
    return config.alpha_start + (config.alpha_end - config.alpha_start) * share
