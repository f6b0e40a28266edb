"""Settings of the analytic tasks."""

from __future__ import annotations

from pydantic import Field

from jedax.settings import Config


class FunctionConfig(Config):
    """A test function (sphere, Rastrigin) seen through the linear projection."""

    dimensions: int = Field(default=20, ge=2, description="Length of a genotype; 20 and 100 are the usual ones.")
    evaluations: int = Field(default=100_000, ge=1, description="Budget of a run that names none.")


class ArmConfig(Config):
    """A planar arm whose links together have length 1."""

    joints: int = Field(default=10, ge=2, description="Joints, and so links; a genotype has one angle for each.")
    evaluations: int = Field(default=100_000, ge=1, description="Budget of a run that names none.")
