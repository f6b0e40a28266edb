"""Analytic tasks: sphere, Rastrigin, a planar arm."""
