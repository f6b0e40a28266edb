"""Reinforcement learning for policy gradients, in pure JAX."""

from jedax.rl.networks import TwinCritic
from jedax.rl.replay import ReplayBuffer
from jedax.rl.td3 import TD3, Policy, TD3State

__all__ = ["TD3", "Policy", "ReplayBuffer", "TD3State", "TwinCritic"]
