"""Settings of PGA-ME: the paper's numbers, and what does not fit."""

import subprocess
import sys

import pytest

from jedax.errors import JedaxError
from jedax.methods.pga_me import PGAMEConfig


def test_defaults_are_the_papers_for_mazes():
    config = PGAMEConfig()
    assert (config.critic_hidden, config.critic_batch, config.offspring) == ((16,), 64, 64)
    assert (config.iso_sigma, config.line_sigma, config.gradient_share) == (0.2, 0.0, 0.5)
    assert (config.gradient_steps, config.critic_steps) == (10, 300)
    assert (config.gradient_rate, config.critic_rate, config.actor_rate) == (1e-3, 3e-4, 3e-4)
    assert (config.discount, config.soft_update, config.buffer) == (0.99, 0.005, 1_000_000)
    assert (config.target_noise, config.target_noise_clip, config.policy_delay) == (0.2, 0.5, 2)
    assert (config.cells, config.batch, config.num_gradient) == (1024, 64, 32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gradient_share": 1.5}, "gradient_share: expected less than or equal to 1, got 1.5"),
        ({"critic_steps": 301}, "critic_steps: expected a multiple of policy_delay, 2, got 301; change one of them"),
        ({"critic_hidden": (16, 0)}, r"critic_hidden\[1\]: expected greater than or equal to 1, got 0"),
        ({"offspring": 0}, "offspring: expected greater than or equal to 1, got 0"),
        ({"ga_ratio": 0.5}, "parameter: unknown name 'ga_ratio'"),
    ],
)
def test_what_does_not_fit(changes, message):
    with pytest.raises(JedaxError, match=message):
        PGAMEConfig.build(changes)


def test_delay_and_steps_can_change_together():
    assert PGAMEConfig(critic_steps=9, policy_delay=3).critic_steps == 9


def test_needs_no_jax():
    program = "import sys, jedax.methods.pga_me_settings; assert not {'jax', 'optax'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
