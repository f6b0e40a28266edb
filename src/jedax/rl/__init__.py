"""Reinforcement learning: TD3 with its critic and replay buffer, and PPO on the steps of a population."""

from jedax.rl.gradients import Policy
from jedax.rl.ppo import PPO, PPOState
from jedax.rl.td3 import TD3, ReplayBuffer, TD3State, TwinCritic

__all__ = ["PPO", "TD3", "PPOState", "Policy", "ReplayBuffer", "TD3State", "TwinCritic"]
