"""JEDi, Quality with Just Enough Diversity: Algorithm 1 of the paper, step by step.

| line of Algorithm 1 | code |
|---|---|
| initialise the repertoire with random genomes | `JEDi.init` |
| learn the behaviour-fitness mapping | `JEDi.fit_model` (`jedax.gp`) |
| sample n_ES behaviour targets | `JEDi.choose_targets` (`jedax.targets`) |
| update alpha | `alpha_at` |
| select the starting genome, initialise the ES centre | `JEDi.start_pool` |
| sample lambda genomes | `JEDi.ask` (`jedax.es`) |
| compute scores, update theta | `JEDi.tell` (`jedax.rankers`, `jedax.es`) |
| update the repertoire | `JEDi.tell` (`jedax.repertoire`) |

`JEDi.start_loop` calls the third to the fifth. The loop itself and the evaluations are in `jedax.search`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import jax
import jax.numpy as jnp
from pydantic import Field, model_validator

from jedax.errors import fail
from jedax.gp import GPData, GPSettings, Hyperparameters, Posterior, Prediction, fit, one_by_one, posterior, predict
from jedax.methods.base import GLOBAL_TABLE, PoolMethod, Preset, Variant, WithPool, cpu_preset
from jedax.rankers import weighted_target_fitness_score
from jedax.repertoire import Repertoire
from jedax.repertoire.repertoire import INFEASIBLE
from jedax.settings import Count, NotNegative, Share
from jedax.targets import choose_bucb, choose_pareto, choose_ucb, choose_uniform
from jedax.types import Array, Bool, Evaluation, Float, Insertion, Int, PRNGKeyArray

JEDI_TABLE = "paper, table 'JEDi hyperparameters for maze and Brax tasks'"
_TUNED_ALPHA = {
    "maze-a": 0.3, "maze-b": 0.3, "maze-c": 0.5, "maze-quad-b": 0.7,
    "halfcheetah": 0.5, "walker2d": 0.3, "ant-maze": 0.0,
}  # fmt: skip
_PRESETS = {
    "decay": Preset(f"alpha falls from 0.8 to 0 over the budget (paper, section 4.3); rest: {GLOBAL_TABLE}"),
    "tuned": Preset(
        f"the constant alpha that the paper found best for the task ({JEDI_TABLE})",
        by_task={task: {"alpha": alpha} for task, alpha in _TUNED_ALPHA.items()},
    ),
    "cpu": cpu_preset(population=16, generations=5),
}
_FEW_LOOPS = 10  # choices of targets that a budget should have room for
_CHOICES = {
    "uniform": "any of the map's cells with equal chance",
    "pareto": "cells that are promising or little known according to a Gaussian process (its Pareto front)",
    "gp-ucb": "the cells with the highest upper confidence bound of a Gaussian process",
    "gp-bucb": "the cells with the highest upper confidence bound of a Gaussian process, chosen one after the other",
}


class JediConfig(GPSettings, WithPool):
    """Settings of JEDi."""

    pool: Count = Field(default=4, description="Number of ES, each with its own target (n_ES).")
    generations: Count = Field(default=100, description="Generations between two choices of targets (N).")
    alpha: Literal["decay"] | Share = Field(
        default="decay", description="Weight of closeness to the target against fitness, 0 to 1; or decay."
    )
    alpha_start: Share = Field(default=0.8, description="Initial value of a decaying alpha.")
    alpha_end: Share = Field(default=0.0, description="Final value of a decaying alpha, when the budget is spent.")
    targets: Literal["pareto", "uniform", "gp-ucb", "gp-bucb"] = Field(
        default="pareto",
        description="How targets are chosen: pareto (Pareto front of the GP's mean and variance), uniform (over all "
        "cells), gp-ucb (the highest upper confidence bounds) or gp-bucb (the same, one after the other: each choice "
        "lowers the variance as an evaluation would).",
    )
    ucb_beta: NotNegative = Field(
        default=2.0, description="Number of standard deviations in the upper confidence bound."
    )
    gp_refit: Share = Field(
        default=0.05,
        description="s, l and s_n are refitted when more than this share of the filled cells has a solution newer than "
        "the last fit; 0: at every choice of targets, if any cell has changed since the last fit.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.pool > self.cells:
            raise fail(
                "pool",
                expected=f"at most one ES per cell ({self.cells})",
                received=self.pool,
                remedy="lower it, raise cells, or give descriptors (without them there is one cell)",
            )
        return self


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class JEDiState:
    """State of a search between two generations.

    Attributes:
        targets: The descriptors that the ES are sent to.
        alpha: Weight of closeness to the target in this loop.
        gp_noise_floor: Noise floor of the last fit, as a share of s^2.
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


class JEDi(PoolMethod):
    """JEDi as pure functions of a `JEDiState` (paper, Algorithm 1).

    One loop of Algorithm 1 is `fit_model`, `start_loop`, and `config.generations` times `ask`, evaluate, `tell`.
    """

    config: JediConfig
    Config = JediConfig
    name = "jedi"
    summary = "JEDi, the paper's method: weighted GP, targets on the Pareto front of its mean and variance."
    presets = _PRESETS
    variants = {
        "jedi-uniform": Variant(
            "JEDi with targets drawn uniformly from all cells; it reaches the goal of mazes more often.",
            {"targets": "uniform"},
            _PRESETS,
        )
    }
    by_task = {"walker2d": {"generations": 1000}, "ant-maze": {"generations": 1000}}
    is_reference = True
    has_model = True

    @property
    def generations_per_loop(self) -> int:
        """Generations between two choices of targets."""
        return self.config.generations

    @property
    def follows_budget(self) -> bool:
        """Whether alpha falls over the budget."""
        return self.config.alpha == "decay"

    @property
    def model_guides(self) -> bool:
        """Whether the choice of targets uses the Gaussian process."""
        return self.config.targets != "uniform"

    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> JEDiState:
        """Return the state after the evaluated initial batch; targets are chosen by `start_loop`."""
        config = self.config
        repertoire = self.begin_repertoire(genotypes, evaluation)
        targets = jnp.zeros((config.pool, self.cells.centroids.shape[1]))
        return JEDiState(
            repertoire=repertoire,
            pool=self.start_pool(key, repertoire, targets),
            targets=targets,
            alpha=alpha_at(config, jnp.float32(0)),
            generation=jnp.int32(0),
            gp=config.initial_hyperparameters(),
            gp_noise_floor=jnp.float32(config.gp_noise_floor),
            gp_fitted_at=jnp.int32(-1),
        )

    def start_loop(
        self,
        key: PRNGKeyArray,
        state: JEDiState,
        progress: Float[Array, ""],
        prediction: Prediction | Posterior | None = None,
    ) -> JEDiState:
        """Begin a loop: choose targets, set alpha, and start an ES for each target."""
        target_key, pool_key = jax.random.split(key)
        targets = self.choose_targets(target_key, prediction)
        alpha = alpha_at(self.config, progress)
        return replace(state, targets=targets, alpha=alpha, pool=self.start_pool(pool_key, state.repertoire, targets))

    def choose_targets(
        self, key: PRNGKeyArray, prediction: Prediction | Posterior | None
    ) -> Float[Array, "pool descriptor"]:
        """Choose one centroid per ES (paper, section 3.2), uniformly where there is no prediction."""
        config = self.config
        if prediction is None:
            index = choose_uniform(key, self.cells.num_cells, config.pool)
        elif config.targets == "gp-bucb":
            assert isinstance(prediction, Posterior)
            # An ES adds all its evaluations of a loop to the weighted GP, a single datum to the standard one.
            share = self.samples * config.population * config.generations if config.gp == "weighted" else 1
            noise = prediction.noise_variance / share
            index = choose_bucb(key, prediction, noise, config.pool, beta=config.ucb_beta)
        elif config.targets == "pareto":
            index = choose_pareto(key, prediction.mean, prediction.variance, config.pool)
        else:
            index = choose_ucb(key, prediction.mean, prediction.variance, config.pool, beta=config.ucb_beta)
        return jnp.asarray(self.cells.centroids)[index]

    def fit_model(self, state: JEDiState) -> tuple[JEDiState, Prediction | Posterior]:
        """Fit fitness over descriptors to the filled cells (paper, section 3.2 and appendix B).

        The hyperparameters are refitted, from their last values, where enough cells are newer than the last fit
        (`gp_refit`); the first time, and when the evaluations have grown by half, from several starts, too. Under
        `vmap` each replica costs as much as its filled cells.

        Returns:
            The state with the fitted hyperparameters, and the prediction at all centroids: a `Posterior`, which has
            covariances, for targets by GP-BUCB, else a `Prediction`.
        """

        def learn(
            start: Hyperparameters, data: GPData, wanted: Bool[Array, ""], thorough: Bool[Array, ""]
        ) -> tuple[tuple[Hyperparameters, Float[Array, ""]], Prediction | Posterior]:
            gp = fit(self.config, start, data, wanted, thorough)
            at = (posterior if self.config.targets == "gp-bucb" else predict)(gp, centroids)
            return (gp.hyperparameters, gp.noise_floor), at

        centroids = self.cells.to_unit_box(jnp.asarray(self.cells.centroids, float))
        repertoire, data = state.repertoire, self.gp_data(state.repertoire)
        num_newer = jnp.sum(repertoire.improved_at > state.gp_fitted_at)
        num, is_first = jnp.sum(data.mask), state.gp_fitted_at < 0
        wanted = (num_newer > self.config.gp_refit * num) | (is_first & (num > 0))
        # From time to time from several starts, since the previous maximum need not stay the highest.
        evaluations, before = self.evaluations(state), jnp.maximum(state.gp_fitted_at, 1)
        thorough = is_first | (_num_growths(evaluations) > _num_growths(before))
        # One replica after the other saves the memory of all Cholesky factors at once.
        (hyperparameters, noise_floor), at = one_by_one(learn)(state.gp, data, wanted, thorough)
        fitted_at = jnp.where(wanted, evaluations, state.gp_fitted_at)
        return replace(state, gp=hyperparameters, gp_noise_floor=noise_floor, gp_fitted_at=fitted_at), at

    def metrics(self, state: JEDiState) -> dict[str, Array]:
        """Return alpha and, where it guides, the hyperparameters of the last GP fit."""
        gp = {
            "gp_signal": state.gp.signal,
            "gp_length_scale": state.gp.length_scale,
            "gp_noise": state.gp.noise,
            "gp_noise_floor": state.gp_noise_floor,
        }
        return {"alpha": state.alpha} | (gp if self.model_guides else {})

    def loop_record(self, state: JEDiState) -> dict[str, Array]:
        """Return targets and alpha of a loop that has just begun."""
        return {"targets": state.targets, "alpha": state.alpha}

    def loop_results(self, state: JEDiState, last: Evaluation) -> dict[str, Array]:
        """Return the member of each ES with the best score in a generation; NaN where all of them failed."""
        by_es = self.pool.split(last)
        scores = self._scores(state, by_es)
        best = jnp.argmax(scores, axis=1)
        each, known = jnp.arange(self.config.pool), jnp.isfinite(scores).any(axis=1)
        return {
            "descriptor": jnp.where(known[:, None], by_es.descriptor[each, best], jnp.nan),
            "fitness": jnp.where(known, by_es.fitness[each, best], jnp.nan),
        }

    def gp_data(self, repertoire: Repertoire) -> GPData:
        """Return the data of the GP: the filled cells first, then masked rows.

        Infeasible solutions count as the worst feasible one.
        """
        row = jnp.nonzero(repertoire.filled, size=self.cells.num_cells, fill_value=0)[0]
        fitness = repertoire.fitness
        worst = jnp.min(fitness, where=fitness > INFEASIBLE, initial=jnp.inf)
        fitness = jnp.maximum(fitness, jnp.where(jnp.isfinite(worst), worst, 0))
        return GPData(
            x=self.cells.to_unit_box(repertoire.descriptors[row]),
            fitness=fitness[row],
            counts=repertoire.counts[row],
            mask=jnp.arange(self.cells.num_cells) < repertoire.filled.sum(),
        )

    def start_pool(self, key: PRNGKeyArray, repertoire: Repertoire, targets: Float[Array, "pool descriptor"]) -> Any:
        """Start an ES at the stored solution with the descriptor nearest to each target, in the unit box."""
        return self.pool.start(key, jax.vmap(repertoire.nearest, (0, None))(targets, self.cells.widths))

    def _scores(self, state: JEDiState, by_es: Evaluation) -> Float[Array, "pool population"]:
        """Score the population of every ES, with distances in the unit box."""
        to_unit = self.cells.to_unit_box
        by_es = replace(by_es, descriptor=to_unit(by_es.descriptor))
        alpha = jnp.broadcast_to(state.alpha, self.config.pool)
        return jax.vmap(weighted_target_fitness_score)(by_es, to_unit(state.targets), alpha)

    def tell(
        self, key: PRNGKeyArray, state: JEDiState, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[JEDiState, Insertion]:
        """Add the generation to the repertoire, score it, and update every ES."""
        repertoire, insertion = self.store(state, genotypes, evaluation)
        scores = self._scores(state, self.pool.split(evaluation))
        pool = self.pool.tell(key, state.pool, evaluation.sampled(genotypes), scores)
        state = replace(state, pool=pool, repertoire=repertoire, generation=state.generation + 1)
        return state, insertion

    def hints(self, generations: int) -> list[str]:
        """Return advice where the budget has room for few choices of targets."""
        config, loops = self.config, -(-generations // self.config.generations)
        if loops >= _FEW_LOOPS:
            return []
        return [
            f"JEDi chooses targets only {loops} time{'s' * (loops != 1)} with this budget; for more, lower "
            f"--generations ({config.generations}) or --population ({config.population}), or raise --evaluations."
        ]

    def lead(self) -> str:
        """Return the idea of JEDi in one sentence."""
        return (
            "JEDi sent searches towards many different behaviours, and not only uphill in fitness, so that it could "
            "leave dead ends."
        )

    def describe_search(self, solution: str, place: str) -> str:
        """Return a paragraph on loops and targets."""
        number = self.config.pool
        several = f"{number} targets" if number > 1 else "one target"
        return (
            f"JEDi works in loops. At the start of each loop it chooses {several}: {place}, "
            f"{_CHOICES[self.config.targets]}. For each target an evolution strategy starts from the stored {solution} "
            f"with the nearest behaviour and breeds {solution}s that come closer to the target and are fitter. Every "
            f"{solution} that is tried on the way is offered to the map, so that later loops start from more places."
        )

    def glossary(self) -> list[tuple[str, str]]:
        """Return JEDi's terms."""
        return [
            ("target", "A behaviour that an evolution strategy is sent towards; it may not have been reached before."),
            ("evolution strategy, ES", "Samples variations of a solution and moves towards the best, again and again."),
            ("GP mean, GP standard deviation", "Fitness of a cell predicted by a Gaussian process; its uncertainty."),
            ("Pareto rank", "1: no other cell has both a higher mean and a higher uncertainty; 2: without rank 1."),
            ("alpha", "Weight in the score of an ES: 1 closeness to the target alone, 0 fitness alone."),
            ("loop", f"{self.config.generations} generations with the same targets."),
        ]


def _num_growths(evaluations: Int[Array, ""]) -> Int[Array, ""]:
    """Return how many times one evaluation has grown by half."""
    return jnp.floor(jnp.log(evaluations.astype(jnp.float32)) / math.log(1.5)).astype(jnp.int32)


def alpha_at(config: JediConfig, progress: Float[Array, ""]) -> Float[Array, ""]:
    """Return the weight of closeness to the target: constant, or falling linearly with progress (0 to 1)."""
    if config.alpha != "decay":
        return jnp.full_like(progress, config.alpha)
    share = jnp.clip(progress, 0, 1)
    return config.alpha_start + (config.alpha_end - config.alpha_start) * share
