"""Settings of the search methods; defaults are the paper's for mazes (its table of global hyperparameters)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from jedax.errors import fail
from jedax.settings import Config

Positive = Annotated[float, Field(gt=0)]
Bounds = tuple[Positive, Positive]
TargetChoice = Literal["pareto", "uniform", "gp-ucb", "gp-bucb"]


class MethodConfig(Config):
    """What every method has: a repertoire, and a number of solutions per generation."""

    cells: int = Field(default=1024, ge=1, description="Cells of the repertoire.")
    cell_layout: Literal["auto", "cvt", "grid"] = Field(
        default="auto", description="Voronoi cells (CVT) or a grid; auto: a grid above 10000 cells."
    )
    cvt_samples: int | None = Field(
        default=None, ge=1, description="Points for the CVT's k-means; default: the larger of 5000 and 10 x cells."
    )
    cvt_iterations: int = Field(default=20, ge=0, description="Steps of the CVT's k-means.")
    repertoire_dtype: Literal["float32", "bfloat16"] = Field(
        default="float32", description="Of stored genotypes; bfloat16 takes half the memory and rounds them."
    )

    samples_per_evaluation: int = Field(
        default=1,
        ge=1,
        le=65_536,
        description="Episodes of every solution, each with random numbers of its own; all count towards the budget.",
    )
    sample_aggregation: Literal["mean", "median"] = Field(
        default="mean", description="What fitness, and each number of the descriptor, are of a solution's samples."
    )

    @property
    def batch(self) -> int:
        """Solutions of one generation."""
        raise NotImplementedError

    @property
    def evaluations_per_generation(self) -> int:
        """Evaluations of one generation: all samples of all its solutions."""
        return self.batch * self.samples_per_evaluation


class WithES(MethodConfig):
    """A method that uses evolution strategies."""

    population: int = Field(default=16, ge=2, description="Solutions per ES and generation (lambda).")
    es: str = Field(
        default="sep-cma-es", description="The ES: sep-cma-es, lm-ma-es, or any of evosax's as evosax:SNES."
    )
    step_size: float = Field(default=0.05, gt=0, description="Initial step size of an ES.")
    elite_ratio: float = Field(default=0.5, gt=0, le=1, description="Share of a population that is recombined.")

    @field_validator("es")
    @classmethod
    def _check_es(cls, name: str) -> str:
        from jedax.es import check_strategy_name

        return check_strategy_name(name)


class ESConfig(WithES):
    """One evolution strategy from a random genotype, by fitness alone (paper, section 4.2)."""

    population: int = Field(default=64, ge=2, description="Solutions per generation (lambda).")
    restart_tolerance: float | None = Field(
        default=None, ge=0, description="Restart when the fitness of a generation spreads over less; default: never."
    )

    @property
    def batch(self) -> int:
        """Solutions of one generation."""
        return self.population


class MapElitesConfig(MethodConfig):
    """MAP-Elites with the iso+line variation."""

    offspring: int = Field(default=64, ge=1, description="Solutions per generation.")
    iso_sigma: float = Field(default=0.2, ge=0, description="Standard deviation of the variation of every parameter.")
    line_sigma: float = Field(
        default=0.0, ge=0, description="Standard deviation along the line to a second parent, in lengths of the line."
    )

    @property
    def batch(self) -> int:
        """Solutions of one generation."""
        return self.offspring


class CMAMEConfig(WithES):
    """CMA-ME, and CMA-MAE with the ranker "threshold" and a soft repertoire."""

    pool: int = Field(default=4, ge=1, description="Emitters, each an ES of its own.")
    ranker: Literal["imp", "opt", "rnd", "threshold"] = Field(
        default="imp",
        description="What an emitter is after: gains of the repertoire, fitness, a random direction of behaviour, or "
        "fitness above a cell's threshold (CMA-MAE).",
    )
    learning_rate: float = Field(
        default=1.0, ge=0, le=1, description="How far a cell's threshold moves towards what the cell accepts."
    )
    threshold_min: Literal["-inf", "task"] | float = Field(
        default="-inf",
        description="Threshold of empty cells; -inf: a hard repertoire; task: the task's lowest fitness.",
    )
    restart_tolerance: float | None = Field(
        default=1e-3, ge=0, description="Restart an emitter whose population's fitness spreads over less."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.threshold_min == "-inf" and self.learning_rate != 1:
            raise fail(
                "learning_rate",
                expected="1 where empty cells have the threshold -inf",
                received=self.learning_rate,
                remedy="set threshold_min to a fitness that no solution falls below, or to 'task'",
            )
        return self

    @property
    def batch(self) -> int:
        """Evaluations of one generation of all emitters."""
        return self.population * self.pool


class JediConfig(WithES):
    """JEDi, Quality with Just Enough Diversity (paper, Algorithm 1)."""

    pool: int = Field(default=4, ge=1, description="ES that run side by side, each with a target of its own (n_ES).")
    generations: int = Field(default=100, ge=1, description="Generations of an ES before new targets are chosen (N).")
    alpha: Literal["decay"] | Annotated[float, Field(ge=0, le=1)] = Field(
        default="decay", description="Weight of nearness to the target against fitness, 0 to 1; or 'decay'."
    )
    alpha_start: float = Field(default=0.8, ge=0, le=1, description="Where a decaying alpha starts.")
    alpha_end: float = Field(default=0.0, ge=0, le=1, description="Where a decaying alpha ends, with the budget.")
    targets: TargetChoice = Field(
        default="uniform",
        description="How targets are chosen: on the Pareto front of the GP's mean and variance, uniformly over "
        "all cells, or by an upper confidence bound, for each alone or as a batch.",
    )
    ucb_beta: float = Field(default=2.0, ge=0, description="Standard deviations in the upper confidence bound.")
    gp: Literal["weighted", "standard"] = Field(
        default="weighted", description="Whether the noise of a cell falls with its number of evaluations."
    )
    gp_signal_bounds: Bounds = Field(
        default=(0.05, 20.0), description="Range of the GP's signal s (fitness standardised)."
    )
    gp_length_scale_bounds: Bounds = Field(
        default=(0.01, 10.0), description="Range of the GP's length scale l (descriptors in the unit box)."
    )
    gp_noise_bounds: Bounds = Field(
        default=(1e-3, 100.0), description="Range of the GP's noise s_n of a single evaluation."
    )
    gp_noise_floor: float = Field(
        default=1e-6,
        gt=0,
        le=0.01,
        description="Least noise variance, as a share of s^2; raised where float32 needs more.",
    )
    gp_max_noise_floor: float = Field(
        default=0.01, gt=0, le=1, description="Highest noise floor tried before the GP falls back to its prior."
    )
    gp_start: tuple[Positive, Positive, Positive] = Field(
        default=(1.0, 0.1, 1.0), description="Where the first fit of s, l and s_n starts; moved into their ranges."
    )
    gp_max_rows: int = Field(
        default=1024,
        ge=1,
        description="The GP is exact up to this many filled cells; of more, neighbours are pooled into so many groups.",
    )
    gp_refit: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="s, l and s_n are fitted anew once more than this share of the filled cells holds a solution that "
        "is newer than the last fit; 0: whenever targets are chosen and something is new.",
    )
    gp_tolerance: float = Field(
        default=0.05, gt=0, description="A fit ends when the next step promises less log likelihood (nats)."
    )
    gp_max_steps: int = Field(default=25, ge=1, description="Most likelihood evaluations in one fit of the GP.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("gp_signal_bounds", "gp_length_scale_bounds", "gp_noise_bounds"):
            _check_bounds(name, getattr(self, name))
        if self.gp_noise_floor > self.gp_max_noise_floor:
            raise fail(
                "gp_max_noise_floor",
                expected=f"at least gp_noise_floor, {self.gp_noise_floor}",
                received=self.gp_max_noise_floor,
                remedy="raise it",
            )
        if self.pool > self.cells:
            raise fail(
                "pool",
                expected=f"at most one ES per cell ({self.cells})",
                received=self.pool,
                remedy="lower it or raise cells",
            )
        return self

    @property
    def batch(self) -> int:
        """Evaluations of one generation of the whole pool."""
        return self.population * self.pool


class JediXConfig(WithES):
    """JEDi-X: ES after fitness; where they wait in vain, scouts that begin anywhere and elites that are varied."""

    population: int = Field(default=64, ge=2, description="Solutions per ES and generation (lambda).")
    pool: int = Field(default=2, ge=1, description="ES after fitness that run side by side, each from an elite.")
    patience: int = Field(
        default=60, ge=1, description="Generations of its own without a better solution after which an ES starts anew."
    )
    elites: int = Field(default=32, ge=1, description="It does at one of this many of the fittest cells.")
    variation_share: Literal["waiting"] | Annotated[float, Field(ge=0, le=1)] = Field(
        default="waiting",
        description="Share of the generations that vary elites; waiting: the share of its patience that the pool in "
        "the mean has spent.",
    )
    scout_share: float = Field(
        default=0.5, ge=0, le=1, description="Share of the others that scouts get, times the patience spent."
    )
    scouts: int = Field(default=4, ge=1, description="ES that begin at any elite and share a generation.")
    scout_patience: int = Field(
        default=3, ge=1, description="Generations of its own without a gain of the repertoire; a scout starts anew."
    )
    line_share: float = Field(
        default=0.75, ge=0, le=1, description="Share of varied elites that move towards or away from another elite."
    )
    intermediate_share: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Share of those with a separate step for each parameter; the others go along the line.",
    )
    line: Bounds = Field(
        default=(0.01, 0.5),
        description="Standard deviations of both: in all directions, in units of that of random genotypes, and of a "
        "step, in lengths of the line.",
    )
    variation: Bounds = Field(
        default=(0.1, 3.0),
        description="Least and largest standard deviation of the others, each log-uniform between them; the unit is "
        "that of random genotypes.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_bounds("variation", self.variation)
        each, rest = divmod(self.batch, self.scouts)
        if each < 2 or rest:
            raise fail(
                "scouts",
                expected=f"a divisor of a generation's {self.batch} solutions that leaves each scout at least 2",
                received=self.scouts,
                remedy="change it, population or pool",
            )
        return self

    @property
    def batch(self) -> int:
        """Solutions of one generation, of whatever kind."""
        return self.population * self.pool


def _check_bounds(name: str, bounds: Bounds) -> None:
    low, high = bounds
    if not low < high:
        raise fail(name, expected="a low bound under a high one", received=bounds, remedy="swap or widen them")
