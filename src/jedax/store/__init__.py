"""Run directories: settings, checkpoints, history, metrics, and reading them back."""
