"""Mazes: a two-wheeled robot looks for a target between walls."""
