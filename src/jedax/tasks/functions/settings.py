"""Settings of the analytic tasks."""

from __future__ import annotations

from pydantic import Field

from jedax.settings import MOST, Config
from jedax.tasks.settings import Budget


class FunctionConfig(Config):
    """Settings of a test function (sphere, Rastrigin) behind the linear projection."""

    dimensions: int = Field(
        default=20, ge=2, le=MOST, description="Length of a genotype; 20 and 100 are the usual ones."
    )
    evaluations: Budget = 100_000


class ArmConfig(Config):
    """Settings of a planar arm whose links together have length 1."""

    joints: int = Field(
        default=10, ge=2, le=MOST, description="Joints and links; a genotype has one angle for each joint."
    )
    evaluations: Budget = 100_000
