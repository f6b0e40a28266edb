"""Tasks of the user's own: functions, classes and objects by name."""
