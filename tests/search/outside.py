"""A problem that the tests of `Optimizer` evaluate themselves, and small searches whose programs they share."""

import numpy as np

import jedax

BOUNDS = ([-1.0, -1.0], [1.0, 1.0])
JEDI_X = {"population": 4, "pool": 2, "cells": 64}
MAPS = {"method": "map-elites", "offspring": 8, "cells": 16}


def simulate(genotypes):
    return -np.square(genotypes - 0.5).sum(axis=1), np.clip(genotypes[:, :2], -1, 1)


def make(settings=JEDI_X, **changes):
    """Return a search for six parameters with batches of eight."""
    defaults = {"num_params": 6, "descriptor_bounds": BOUNDS, "evaluations": 8 * 200, **settings}
    return jedax.Optimizer(**{**defaults, **changes})


def step(optimizer, n=None):
    """Ask once and tell all of it; return the solutions."""
    genotypes = optimizer.ask(n)
    optimizer.tell(genotypes, *simulate(genotypes))
    return genotypes


def drive(optimizer, generations):
    for _ in range(generations):
        step(optimizer)
    return optimizer
