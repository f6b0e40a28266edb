"""Environments of gymnasium as tasks."""
