"""Processes that evaluate tasks outside JAX. Workers import NumPy and the simulator, never JAX."""
