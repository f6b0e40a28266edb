"""Processes that evaluate what JAX cannot run. What runs in them imports NumPy and the simulator, never JAX."""
