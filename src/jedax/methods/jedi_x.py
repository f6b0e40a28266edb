"""JEDi-X: a pool of evolution strategies that maximise fitness, and, while they stagnate, scouts and variation.

| step of a generation | code |
|---|---|
| choose the kind of generation: exploration is likelier the longer the pool stagnates | `JEDiX.choose_kind` |
| pool: sample the ES that started from the fittest elites | `JEDiX.ask` (`jedax.es`) |
| scouts: sample the small ES that started from random elites | `JEDiX.ask` (`jedax.es`) |
| variation: vary random elites | `JEDiX.vary` (`jedax.variation`) |
| move the mean of the ES by policy gradients, too, where policies are large | `JEDiX.tell` (`jedax.rl.ppo`) |
| update the ES; restart an ES that stagnates and a scout that adds nothing to the repertoire | `JEDiX.tell` |
| update the repertoire | `JEDiX.tell` (`jedax.repertoire`) |

JEDi-X has no targets: scouts and variation explore, the pool exploits. Where policies are large, one scout races
against the only ES of the pool, and neither restarts by the rules above (`jedax.es.race`). results/beyond/rejected.md
describes the alternatives that were tried.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import jax
import jax.numpy as jnp
from pydantic import Field, model_validator

from jedax.errors import fail
from jedax.es.pool import ESPool
from jedax.es.race import Race, RaceState
from jedax.es.restarts import Restarts, RestartState
from jedax.methods.base import PoolMethod, Preset, WithPool, cpu_preset, spread_of
from jedax.methods.critic import has_steps, observation_scale, steps_of
from jedax.repertoire import Repertoire
from jedax.rl import PPO, PPOState
from jedax.settings import MOST, Count, NotNegative, Positive, Range, Share
from jedax.types import NOT_ADDED, Array, Bool, Evaluation, Float, Insertion, Int, PRNGKeyArray
from jedax.variation import iso_line, log_uniform

POOL, SCOUTS, VARIATION = range(3)
"""The kinds of generations, as in `JEDiXState.kind`."""

_MOST_OF_FULL_COVARIANCE = 300  # parameters
_LARGEST_GROWTH = 64  # of a population
_MOST_NUMBERS = 200_000  # of the largest population
_REPORTED = ("age", "level", "refined")  # of each ES of a race


class JediXConfig(WithPool):
    """Settings of JEDi-X."""

    step_size: Positive | None = Field(
        default=None, description="Initial step size of every ES; default: first_step and steps."
    )
    first_step: Positive = Field(
        default=0.15,
        description="Initial step size of the first ES and of restarts from random genotypes, in units of the spread "
        "of random genotypes.",
    )
    steps: Range = Field(
        default=(0.01, 1.0),
        description="Range of the initial step size of other ES, drawn log-uniformly at each start, in the same units.",
    )
    growth: Count = Field(
        default=1,
        description="Restarts have populations up to this many times larger, in turn with small ones; 1: none grows.",
    )
    optimum_radius: NotNegative = Field(
        default=0.01,
        description="Where populations grow, an ES restarts within this distance of an optimum that is known, in units "
        "of the spread of random genotypes.",
    )
    rediscovery: Share = Field(
        default=0.9, description="Each restart at a known optimum multiplies the share of the pool by this."
    )
    exploration: Share = Field(
        default=1.0,
        description="Largest share of generations that a pool which waits gives to exploration; in a race its share.",
    )
    head_start: NotNegative = Field(
        default=100.0,
        description="The share of variation begins at its largest and falls by the factor e in this many generations; "
        "0: it begins at 0.",
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
    refinements: int = Field(
        default=2,
        ge=0,
        le=MOST,
        description="How often the ES of a race goes on with half the step.",
    )
    longest: NotNegative = Field(
        default=0.0,
        description="Largest length of the mean of an ES of a race that is not bold, in lengths of a random genotype; "
        "0: any length.",
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
    elites: Count = Field(default=32, description="ES restart from an elite drawn from this many of the fittest cells.")
    variation_share: Literal["waiting"] | Share = Field(
        default="waiting",
        description="Share of generations that vary elites; waiting: the mean share of patience the pool has used up.",
    )
    scout_share: Share = Field(
        default=0.5, description="Share of the other generations given to scouts, times the share of patience used up."
    )
    scouts: Count = Field(
        default=4,
        description="Number of small ES (scouts), started from random elites, that share one generation; fewer where "
        "it cannot be divided by that.",
    )
    scout_patience: Count = Field(
        default=3, description="A scout restarts after this many of its generations that add nothing to the repertoire."
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
                remedy="set it to 0, or them to 1, since one rival races against one ES",
            )
        return self

    @property
    def num_scouts(self) -> int:
        """The most scouts, up to `scouts`, that can share a generation equally, with at least two solutions each."""
        most = min(self.scouts, self.batch // 2)
        return next(number for number in range(most, 0, -1) if self.batch % number == 0)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class JEDiXState:
    """State of a search between two generations.

    Attributes:
        best: Best fitness of each ES since it started; of the first ES, the best of the whole run.
        waited: Generations of each ES since its `best` last improved.
        restarts: Populations and optima of the ES.
        race: Ages and levels of the ES and of its rival, which is the scout; None where there is no race (`trial`).
        learners: What PPO knows of the leader and of its rival; None where it moves neither.
        idle: Generations of each scout since it last added to the repertoire.
        kind: Kind of the last generation asked for: `POOL`, `SCOUTS` or `VARIATION`.
        spread: Standard deviation of random genotypes over all parameters, the unit of variation.
        num_restarts: Restarts of all ES of the pool together.
        num_scouted: Generations of scouts.
        num_varied: Generations of varied elites.
    """

    repertoire: Repertoire
    pool: Any
    best: Float[Array, " pool"]
    waited: Int[Array, " pool"]
    restarts: RestartState
    race: RaceState | None
    learners: tuple[PPOState | None, PPOState | None]
    scouts: Any
    idle: Int[Array, " scouts"]
    kind: Int[Array, ""]
    spread: Float[Array, ""]
    generation: Int[Array, ""]
    num_restarts: Int[Array, ""]
    num_scouted: Int[Array, ""]
    num_varied: Int[Array, ""]


class JEDiX(PoolMethod):
    """JEDi-X as pure functions of a `JEDiXState`.

    A generation is either one population of every ES of the pool, one of every scout, or a batch of varied elites.
    """

    config: JediXConfig
    Config = JediXConfig
    name = "jedi-x"
    summary = "JEDi-X, the default: ES that maximise fitness and, while they stagnate, scouts and varied elites."
    presets = {
        "default": Preset("one setting for all tasks but those with large policies"),
        "cpu": cpu_preset(),
    }
    large_policies = {
        "es": "lm-ma-es", "population": 64, "pool": 1, "scouts": 1, "patience": 100, "trial": 128, "head_start": 0.0,
        "exploration": 0.05, "first_step": 0.36, "longest": 1.0, "bold_step": 0.6, "gradient_steps": 32,
    }  # fmt: skip
    family = "jedi"
    has_branches = True

    @functools.cached_property
    def scouts(self) -> ESPool:
        """The scouts: together they sample as many solutions as the pool."""
        config, number = self.config, self.config.num_scouts
        return ESPool(config.make_strategy(config.batch // number, step_size=1.0), number)

    @functools.cached_property
    def pool(self) -> ESPool:
        """The evolution strategies."""
        return ESPool(self.config.make_strategy(step_size=1.0).growing(self.config.growth), self.config.pool)

    @functools.cached_property
    def restarts(self) -> Restarts:
        """The rule by which ES of the pool restart."""
        return Restarts(self.config.pool, self.config.growth, self.config.optimum_radius)

    @functools.cached_property
    def race(self) -> Race:
        """The rule by which rivals begin and end where there is a race (`trial`)."""
        config = self.config
        return Race(config.trial, config.patience, config.refinements, config.scout_share, config.bold_step > 0)

    @functools.cached_property
    def ppo(self) -> PPO | None:
        """PPO, which moves the ES of a race; None where it moves none, or genotypes are no policies."""
        config, problem = self.config, self.problem
        if not (config.trial and config.gradient_steps and has_steps(problem)):
            return None
        return PPO(
            problem,  # type: ignore[arg-type]
            problem.observation_size,  # type: ignore[attr-defined]
            *observation_scale(problem),
            actor_rate=config.gradient_rate,
            steps=config.gradient_steps,
        )

    @property
    def needs_transitions(self) -> bool:  # type: ignore[override]
        """Whether evaluations must bring transitions: PPO learns from them."""
        return self.ppo is not None

    def units(self, key: PRNGKeyArray, number: int, spread: Float[Array, ""]) -> Float[Array, " number"]:
        """Return initial step sizes for a number of ES."""
        if self.config.step_size is not None:
            return jnp.full(number, self.config.step_size)
        return spread * log_uniform(key, jnp.zeros(number), self.config.steps)

    @classmethod
    def few_evaluations(cls, num_params: int, batch: int | None) -> dict[str, Any]:
        """Return one ES with the population of CMA-ES, and its full covariance up to some hundreds of parameters."""
        default = 4 * math.ceil((4 + math.floor(3 * math.log(num_params))) / 4)  # a multiple of the scouts
        population = max(8, default, 4 * math.ceil((batch or 1) / 4))  # at least two for each scout
        es = "cma-es" if num_params <= _MOST_OF_FULL_COVARIANCE else "sep-cma-es"
        growth = max(1, min(_LARGEST_GROWTH, _MOST_NUMBERS // (population * num_params)))
        patience = min(60, 10 + 2 * num_params)
        return {
            "population": population,
            "pool": 1,
            "es": es,
            "growth": growth,
            "first_step": 1.0,
            "exploration": 0.1,
            "patience": patience,
        }

    def init(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"], evaluation: Evaluation) -> JEDiXState:
        """Return the state after the evaluated initial batch, with all ES started."""
        pool_key, elite_key, scout_key, place_key, spread_key, unit_key, scout_unit_key = jax.random.split(key, 7)
        repertoire = self.begin_repertoire(genotypes, evaluation)
        size = self.config.pool
        spread = spread_of(spread_key, self.problem)
        race = self.race.begin() if self.config.trial else None
        if race is not None:
            scouts = self.start_rival(scout_key, self.problem.init(place_key), race.rival.bold, spread)
        else:
            units = self.units(scout_unit_key, self.config.num_scouts, spread)
            scouts = self.start_scouts(scout_key, repertoire.sample(place_key, self.config.num_scouts), units)
        restarts = self.restarts.begin(genotypes.shape[1])
        first = self.units(unit_key, size, spread).at[0].set(self.first_unit(spread))
        return JEDiXState(
            repertoire=repertoire,
            pool=self.pool.start(pool_key, self.choose_elites(elite_key, repertoire), (first, restarts.growth)),
            best=jnp.full(size, -jnp.inf),
            waited=jnp.zeros(size, jnp.int32),
            restarts=restarts,
            race=race,
            learners=(self.start_learner(pool_key, genotypes[0]), self.start_learner(scout_key, genotypes[0])),
            scouts=scouts,
            idle=jnp.zeros(self.config.num_scouts, jnp.int32),
            kind=jnp.int32(POOL),
            spread=spread,
            generation=jnp.int32(0),
            num_restarts=jnp.int32(0),
            num_scouted=jnp.int32(0),
            num_varied=jnp.int32(0),
        )

    def start_scouts(
        self, key: PRNGKeyArray, means: Float[Array, "scouts params"], units: Float[Array, " scouts"]
    ) -> Any:
        """Return scouts that start at some genotypes with some step sizes."""
        return self.scouts.start(key, means, (units, jnp.ones(self.config.num_scouts, jnp.int32)))

    def start_rival(
        self, key: PRNGKeyArray, mean: Float[Array, " params"], bold: Bool[Array, ""], spread: Float[Array, ""]
    ) -> Any:
        """Return the scout of a race, started at a genotype with the first step of its kind."""
        step = jnp.where(bold, spread * self.config.bold_step, self.first_unit(spread))
        return self.start_scouts(key, mean[None], step[None])

    def start_learner(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> PPOState | None:
        """Return what PPO knows before the first generation of an ES of a race, for genotypes like this."""
        return None if self.ppo is None else self.ppo.init(key, genotype)

    def choose_elites(self, key: PRNGKeyArray, repertoire: Repertoire) -> Float[Array, "pool params"]:
        """Return starting genotypes for the pool: the fittest elite first, then random ones among the fittest.

        Elites come from different cells, so the ES start from different behaviours.
        """
        number = min(self.config.elites, self.cells.num_cells)
        fitness, cell = jax.lax.top_k(jnp.where(repertoire.filled, repertoire.fitness, -jnp.inf), number)
        known = jnp.maximum(jnp.isfinite(fitness).sum(), 1)
        place = jax.random.randint(key, (self.config.pool,), 0, known).at[0].set(0)
        genotypes = repertoire.genotypes[cell[place]].astype(repertoire.best_genotype.dtype)
        return jnp.where(repertoire.filled.any(), genotypes, repertoire.best_genotype)

    def choose_starts(
        self,
        elite_key: PRNGKeyArray,
        unit_key: PRNGKeyArray,
        is_random: Bool[Array, " pool"],
        repertoire: Repertoire,
        spread: Float[Array, ""],
    ) -> tuple[Float[Array, "pool params"], Float[Array, " pool"]]:
        """Return where ES of the pool start, and with which step sizes.

        Some start from a random genotype with the first step, the others from one of the fittest elites.
        """
        fittest, units = self.choose_elites(elite_key, repertoire), self.units(unit_key, self.config.pool, spread)
        if self.config.growth == 1:
            return fittest, units
        anywhere = jax.vmap(self.problem.init)(jax.random.split(jax.random.fold_in(elite_key, 1), self.config.pool))
        return jnp.where(is_random[:, None], anywhere, fittest), jnp.where(is_random, self.first_unit(spread), units)

    def first_unit(self, spread: Float[Array, ""]) -> Float[Array, ""]:
        """Return the initial step size of ES that start from random genotypes."""
        return spread * self.config.first_step if self.config.step_size is None else jnp.float32(self.config.step_size)

    def shares(self, state: JEDiXState) -> Float[Array, "3"]:
        """Return the probabilities of the next generation's kinds: pool, scouts, variation.

        Let w be the mean share of patience that the pool has used up, at most `exploration`, and larger the more often
        the pool has found known optima (`rediscovery`). By default variation has probability w, at the start of the
        search more (`head_start`), scouts have `scout_share` * w of the rest, and the pool has what remains. In a race
        variation has probability `exploration`, and the rival `scout_share` of the rest.
        """
        config = self.config
        if state.race is not None:
            rival = (1 - config.exploration) * self.race.rival_share(state.race)
            return jnp.stack([1 - config.exploration - rival, rival, config.exploration])
        waiting = (state.waited / state.restarts.growth).mean() / config.patience
        known = 1 - config.rediscovery**state.restarts.num_known
        spent = jnp.maximum(jnp.minimum(waiting, config.exploration), known)
        early = config.exploration * jnp.exp(-state.generation / config.head_start) if config.head_start else 0.0
        most = jnp.maximum(spent, early)
        variation = most if config.variation_share == "waiting" else jnp.float32(config.variation_share)
        scouts = (1 - variation) * config.scout_share * spent
        return jnp.stack([1 - variation - scouts, scouts, variation])

    def climbs(self, state: JEDiXState) -> Bool[Array, ""]:
        """Return whether the last generation asked for is one of the pool."""
        return state.kind == POOL

    def choose_kind(self, key: PRNGKeyArray, state: JEDiXState) -> Int[Array, ""]:
        """Draw the kind of the next generation."""
        return jnp.searchsorted(jnp.cumsum(self.shares(state)[:-1]), jax.random.uniform(key), side="right")

    def ask(self, key: PRNGKeyArray, state: JEDiXState) -> tuple[Float[Array, "batch params"], JEDiXState]:
        """Choose the kind of a generation and sample it."""
        kind_key, sample_key = jax.random.split(key)
        return self._sample(sample_key, self.choose_kind(kind_key, state), state)

    def again(self, key: PRNGKeyArray, asked: JEDiXState) -> Float[Array, "batch params"]:
        """Return further solutions of the same kind and of the same ES."""
        return self._sample(key, asked.kind, asked)[0]

    def _sample(
        self, sample_key: PRNGKeyArray, kind: Int[Array, ""], state: JEDiXState
    ) -> tuple[Float[Array, "batch params"], JEDiXState]:
        def of_pool() -> tuple[Array, Any, Any]:
            genotypes, pool = self.pool.ask(sample_key, state.pool)
            return genotypes, pool, state.scouts

        def of_scouts() -> tuple[Array, Any, Any]:
            genotypes, scouts = self.scouts.ask(sample_key, state.scouts)
            return genotypes, state.pool, scouts

        def of_variation() -> tuple[Array, Any, Any]:
            return self.vary(sample_key, state), state.pool, state.scouts

        genotypes, pool, scout_states = jax.lax.switch(kind, (of_pool, of_scouts, of_variation))
        return genotypes, replace(state, pool=pool, scouts=scout_states, kind=kind)

    def vary(self, key: PRNGKeyArray, state: JEDiXState) -> Float[Array, "batch params"]:
        """Return varied elites: some recombined with another elite, the rest with isotropic noise at a random scale."""
        config = self.config
        parent_key, partner_key, kind_key, scale_key, vary_key = jax.random.split(key, 5)
        parents = state.repertoire.sample(parent_key, config.batch)
        partners = state.repertoire.sample(partner_key, config.batch)
        iso_sigma, line_sigma = config.line
        kind = jax.random.uniform(kind_key, (config.batch, 1), parents.dtype)
        recombined = kind < config.line_share
        intermediate = kind < config.line_share * config.intermediate_share
        scale = jnp.where(recombined, iso_sigma, log_uniform(scale_key, kind, config.variation))
        step = jnp.where(recombined, line_sigma, 0.0)
        return iso_line(vary_key, parents, partners, scale * state.spread, step, intermediate)

    def tell(
        self, key: PRNGKeyArray, state: JEDiXState, genotypes: Float[Array, "batch params"], evaluation: Evaluation
    ) -> tuple[JEDiXState, Insertion]:
        """Add the generation to the repertoire; update the ES that sampled it and restart those that stagnate."""
        repertoire, insertion = self.store(state, genotypes, evaluation)
        learn_key, elite_key, restart_key, unit_key, kind_key = jax.random.split(key, 5)
        config, scores = self.config, evaluation.fitness_or_worst

        def update_pool() -> JEDiXState:
            by_es, achieved = self.pool.split(scores), self.pool.split(evaluation.achieved)
            # With several ES the first must beat the best of the run: small gains below it do not count.
            best_so_far = state.repertoire.best_fitness
            to_beat = state.best.at[0].max(best_so_far) if config.pool > 1 else state.best
            best = jnp.maximum(achieved.max(axis=1), to_beat)
            waited = jnp.where(best > to_beat, 0, state.waited + 1)
            has_improved = achieved.max() > best_so_far
            found = self.pool.split(genotypes)
            restarts, has_converged = self.restarts.observe(state.restarts, found, achieved, state.spread, has_improved)
            pool = self.pool.tell(learn_key, state.pool, genotypes, by_es)
            stuck = (waited >= config.patience * restarts.growth) | has_converged
            restarts = self.restarts.restart(kind_key, restarts, stuck)

            def restarted() -> Any:
                means, units = self.choose_starts(elite_key, unit_key, restarts.is_large, repertoire, state.spread)
                return self.pool.restart(restart_key, pool, stuck, means, (units, restarts.growth))

            pool = jax.lax.cond(stuck.any(), restarted, lambda: pool)
            return replace(
                state,
                pool=pool,
                best=jnp.where(stuck, -jnp.inf, best),
                waited=jnp.where(stuck, 0, waited),
                restarts=restarts,
                num_restarts=state.num_restarts + stuck.sum(dtype=jnp.int32),
            )

        def update_scouts() -> JEDiXState:
            gains = self.scouts.split(insertion.status != NOT_ADDED).any(axis=1)
            idle = jnp.where(gains, 0, state.idle + 1)
            stuck = idle >= config.scout_patience
            means = repertoire.sample(elite_key, config.num_scouts)
            places = self.units(unit_key, config.num_scouts, state.spread), jnp.ones(config.num_scouts, jnp.int32)
            scouts = self.scouts.tell(learn_key, state.scouts, genotypes, self.scouts.split(scores))
            scouts = self.scouts.restart(restart_key, scouts, stuck, means, places)
            return replace(state, scouts=scouts, idle=jnp.where(stuck, 0, idle))

        def of_race(racer: ESPool, states: Any, learner: PPOState | None, bold: Array) -> tuple[Any, PPOState | None]:
            told = racer.tell(learn_key, states, genotypes, racer.split(scores))

            def guided() -> tuple[Any, PPOState | None]:
                moved, learnt = told, learner
                if self.ppo is not None and learner is not None:
                    before, pace = racer.means(states), states.unit[0] / self.first_unit(state.spread)
                    steps = steps_of(evaluation, self.name)
                    actor, learnt = self.ppo.train(learn_key, learner, before[0], steps, pace)
                    moved = racer.move(told, actor - before)
                # The noise of its steps would make the mean of an ES longer and longer.
                longest = config.longest * state.spread * math.sqrt(genotypes.shape[1])
                return racer.shorten(moved, longest) if config.longest else moved, learnt

            return jax.lax.cond(bold, lambda: (told, learner), guided)

        def update_leader() -> JEDiXState:
            assert state.race is not None
            race, refines = self.race.observe_leader(state.race, evaluation.achieved)
            pool, leader = of_race(self.pool, state.pool, state.learners[0], race.leader.bold)
            pool = jax.lax.cond(refines, lambda: self.pool.refine(restart_key, pool), lambda: pool)
            return replace(state, pool=pool, race=race, learners=(leader, state.learners[1]))

        def update_rival() -> JEDiXState:
            assert state.race is not None
            race, fate = self.race.observe_rival(unit_key, state.race, evaluation.achieved)
            rival = of_race(self.scouts, state.scouts, state.learners[1], state.race.rival.bold)
            pool, leader = jax.lax.cond(fate.overtakes, lambda: rival, lambda: (state.pool, state.learners[0]))

            def another() -> tuple[Any, PPOState | None]:
                mean = self.problem.init(elite_key)
                started = self.start_rival(restart_key, mean, race.rival.bold, state.spread)
                return started, self.start_learner(restart_key, mean)

            def goes_on() -> tuple[Any, PPOState | None]:
                states, learnt = rival
                refined = jax.lax.cond(fate.refines, lambda: self.scouts.refine(restart_key, states), lambda: states)
                return refined, learnt

            scouts, learner = jax.lax.cond(fate.ends, another, goes_on)
            restarts, learners = state.num_restarts + fate.ends, (leader, learner)
            return replace(state, pool=pool, scouts=scouts, race=race, learners=learners, num_restarts=restarts)

        updates = (update_pool, update_scouts) if state.race is None else (update_leader, update_rival)
        state = jax.lax.switch(state.kind, (*updates, lambda: state))
        state = replace(
            state,
            repertoire=repertoire,
            generation=state.generation + 1,
            num_scouted=state.num_scouted + (state.kind == SCOUTS),
            num_varied=state.num_varied + (state.kind == VARIATION),
        )
        return state, insertion

    def metrics(self, state: JEDiXState) -> dict[str, Array]:
        """Return the restarts of the pool, and the generations of scouts and of variation."""
        found = {name: getattr(state, name) for name in ("num_restarts", "num_scouted", "num_varied")}
        if state.race is None:
            return found
        for who, racer in (("leader", state.race.leader), ("rival", state.race.rival)):
            found |= {f"{who}_{name}": getattr(racer, name) for name in _REPORTED}
            found[f"{who}_bold"] = racer.bold.astype(jnp.int32)
        return found

    def glossary(self) -> list[tuple[str, str]]:
        """Return JEDi-X's terms."""
        pool = [
            ("pool", f"The {self.config.pool} ES that maximise fitness, started from the fittest elites."),
            ("scouts", "Small ES that start from random elites, and restart when they find nothing new."),
        ]
        race = [
            ("level", "The mean fitness of the best quarter of an ES' solutions, over its last generations."),
            ("leader", "The ES that rivals try to overtake."),
            (
                "rival",
                "An ES from a random solution; it replaces the leader once its level is higher.",
            ),
        ]
        gradient = "A step of the mean of an ES, learnt from all steps of the episodes of its solutions (PPO)."
        return [
            ("elite", "The best solution of a cell."),
            ("evolution strategy, ES", "Samples variations of a solution and moves towards the best, again and again."),
            ("variation", "Random changes of elites from all over the map, which find new cells."),
            *(race if self.config.trial else pool),
            *([("policy gradient", gradient)] if self.ppo is not None else []),
        ]
