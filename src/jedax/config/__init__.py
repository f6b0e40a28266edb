"""Settings: frozen pydantic models, the one place that names, bounds and explains every parameter.

Nothing here imports JAX, so that the command line answers at once.
"""
