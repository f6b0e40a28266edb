"""Settings of PGA-ME; defaults are the paper's for mazes (its table of PGA-ME's hyperparameters)."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from jedax.errors import fail
from jedax.methods.settings import MapElitesConfig

Layer = Annotated[int, Field(ge=1)]


class PGAMEConfig(MapElitesConfig):
    """PGA-ME, Policy Gradient Assisted MAP-Elites (Nilsson & Cully 2021), on TD3 (Fujimoto et al. 2018)."""

    gradient_share: float = Field(
        default=0.5, ge=0, le=1, description="Share of the offspring made by policy gradients, the greedy actor among "
        "them; the others by iso+line. 0: MAP-Elites.",
    )  # fmt: skip
    gradient_steps: int = Field(default=10, ge=1, description="Adam's steps that make an offspring by gradients.")
    gradient_rate: float = Field(default=1e-3, gt=0, description="Learning rate of these steps.")
    critic_hidden: tuple[Layer, ...] = Field(
        default=(16,), description="Neurons in each hidden layer of each of the two critic networks."
    )
    critic_steps: int = Field(default=300, ge=1, description="Updates of the critic per generation.")
    critic_batch: int = Field(default=64, ge=1, description="Steps in a minibatch, of critic and gradients.")
    critic_rate: float = Field(default=3e-4, gt=0, description="Learning rate of the critic.")
    actor_rate: float = Field(default=3e-4, gt=0, description="Learning rate of the greedy actor.")
    discount: float = Field(default=0.99, ge=0, le=1, description="Worth of a reward one step later.")
    soft_update: float = Field(
        default=0.005, gt=0, le=1, description="Share of the way that the target networks go per update (tau)."
    )
    target_noise: float = Field(
        default=0.2, ge=0, description="Standard deviation of the noise on the target actor's actions."
    )
    target_noise_clip: float = Field(default=0.5, ge=0, description="What that noise is clipped to.")
    policy_delay: int = Field(
        default=2, ge=1, le=100, description="Updates of the critic for one of the greedy actor and the targets."
    )
    buffer: int = Field(default=1_000_000, ge=1, description="Latest steps that are kept to learn from.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.critic_steps % self.policy_delay:
            raise fail(
                "critic_steps",
                expected=f"a multiple of policy_delay, {self.policy_delay}",
                received=self.critic_steps,
                remedy="change one of them",
            )
        return self

    @property
    def num_gradient(self) -> int:
        """Offspring of one generation made by gradients, the greedy actor included."""
        return round(self.offspring * self.gradient_share)
