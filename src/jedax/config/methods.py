"""Settings of the search methods, with the paper's values per task as presets."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jedax._checks import fail
from jedax.config.base import Config

Positive = Annotated[float, Field(gt=0)]
Bounds = tuple[Positive, Positive]
TargetChoice = Literal["pareto", "uniform", "gp-ucb", "gp-bucb"]


class JediConfig(Config):
    """JEDi, Quality with Just Enough Diversity (paper, Algorithm 1)."""

    population: int = Field(default=16, ge=2, description="Solutions per ES and generation (lambda).")
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
    gp_tolerance: float = Field(
        default=0.05, gt=0, description="A fit ends when the next step promises less log likelihood (nats)."
    )
    gp_max_steps: int = Field(default=25, ge=1, description="Most likelihood evaluations in one fit of the GP.")
    es: str = Field(
        default="sep-cma-es", description="The ES: sep-cma-es, lm-ma-es, or any of evosax's as evosax:SNES."
    )
    step_size: float = Field(default=0.05, gt=0, description="Initial step size of an ES.")
    elite_ratio: float = Field(default=0.5, gt=0, le=1, description="Share of a population that is recombined.")
    cells: int = Field(default=1024, ge=1, description="Cells of the repertoire.")
    cell_layout: Literal["auto", "cvt", "grid"] = Field(
        default="auto", description="Voronoi cells (CVT) or a grid; auto: a grid above 10000 cells."
    )
    cvt_samples: int | None = Field(
        default=None, ge=1, description="Points for the CVT's k-means; default: the larger of 5000 and 10 x cells."
    )
    cvt_iterations: int = Field(default=20, ge=0, description="Steps of the CVT's k-means.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        from jedax.es import check_strategy_name

        check_strategy_name(self.es)
        for name in ("gp_signal_bounds", "gp_length_scale_bounds", "gp_noise_bounds"):
            low, high = getattr(self, name)
            if not low < high:
                raise fail(
                    name,
                    expected="a low bound under a high one",
                    received=(low, high),
                    remedy="swap or widen them",
                )
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
