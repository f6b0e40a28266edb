"""The settings of the Gaussian process."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from jedax.errors import fail
from jedax.gp.model import Hyperparameters
from jedax.settings import MOST, Config, Positive, Range


class GPSettings(Config):
    """Settings of the Gaussian process; a method that has one inherits them, so their names begin with `gp`.

    Fitness is standardised, so that `s` is of order 1. The 1,024 cells of a repertoire in two dimensions lie about 0.03
    apart: below `l = 0.01` they are independent, above `l = 10` the process is nearly linear. The bounds of `s_n` suit
    both values of `gp`: at 1e-3 a solution is as good as exact, and at 100 a cell of 1e5 evaluations has a standard
    deviation of 0.3, one of 1e3 evaluations 3. From the default start, a short length scale with noise, the likelihood
    climbs to the optimum with structure and not to the one that explains all differences by noise.
    """

    gp: Literal["weighted", "standard"] = Field(
        default="weighted",
        description="weighted: the noise of a cell falls with its number of evaluations; standard: equal noise.",
    )
    gp_signal_bounds: Range = Field(
        default=(0.05, 20.0), description="Range of the GP's signal s (fitness standardised)."
    )
    gp_length_scale_bounds: Range = Field(
        default=(0.01, 10.0),
        description="Range of the GP's length scale l (descriptors in the unit box); with more cells than 4 times "
        "gp_max_rows its low end is raised to what that many features resolve.",
    )
    gp_noise_bounds: Range = Field(
        default=(1e-3, 100.0), description="Range of the GP's noise s_n of a single evaluation."
    )
    gp_noise_floor: float = Field(
        default=1e-10,
        gt=0,
        le=0.01,
        description="Lowest noise variance, as a share of s^2; raised tenfold where a factorisation fails.",
    )
    gp_max_noise_floor: float = Field(
        default=0.01, gt=0, le=1, description="Highest noise floor tried before the GP falls back to its prior."
    )
    gp_start: tuple[Positive, Positive, Positive] = Field(
        default=(1.0, 0.1, 1.0), description="Start of the first fit of s, l and s_n; clipped to their ranges."
    )
    gp_max_rows: int = Field(
        default=1024,
        ge=1,
        le=MOST,
        description="s, l and s_n are fitted to this many filled cells, drawn at random if there are more; "
        "up to 128 cells are all used.",
    )
    gp_tolerance: float = Field(
        default=0.05, gt=0, description="A fit stops when the expected gain in log likelihood is below this (nats)."
    )
    gp_max_steps: int = Field(
        default=25,
        ge=1,
        le=MOST,
        description="Largest number of likelihood evaluations from one start of a fit of the GP.",
    )

    @model_validator(mode="after")
    def _check_noise_floors(self) -> Self:
        if self.gp_noise_floor > self.gp_max_noise_floor:
            raise fail(
                "gp_max_noise_floor",
                expected=f"at least gp_noise_floor, {self.gp_noise_floor}",
                received=self.gp_max_noise_floor,
                remedy="raise it",
            )
        return self

    @property
    def gp_bounds(self) -> tuple[tuple[float, float], ...]:
        """Bounds of `s`, `l` and `s_n`, in this order."""
        return self.gp_signal_bounds, self.gp_length_scale_bounds, self.gp_noise_bounds

    def initial_hyperparameters(self) -> Hyperparameters:
        """Return `gp_start`, clipped to the bounds, for the first fit of a search."""
        return Hyperparameters.of(*np.clip(self.gp_start, *np.transpose(self.gp_bounds)).tolist())
