"""Tasks of the user's own: a plain Python function, or a task class by its name."""
