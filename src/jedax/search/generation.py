"""One generation of a search whose solutions are evaluated elsewhere: in any order, by any number of workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jedax.types import Bool, Float, Int

TRIALS = 3
"""Failed candidates of one place after which the place itself counts as failed."""


@dataclass
class Generation:
    """The places of a generation; each takes the first result that one of its candidates has.

    The first candidate of a place is the solution that the method asked for. Further ones are drawn from the same
    distribution: where a candidate failed, and where workers are idle while others still evaluate. A place also takes
    the result of a candidate of another place or of a former generation, if the method agrees (`Method.could_ask`).

    Attributes:
        candidates: `(trials, size, params)`, the candidates drawn so far, as the method asked for them: they need not
            be within bounds.
        genotypes: `(size, params)`, the solutions that have the results; the first candidates before.
        given: Number of candidates of each place that were given out.
        failed: Number of candidates of each place that failed.
        filled: Whether a place has its result.
        fitness: Results of the filled places, NaN where all trials failed.
        descriptors: Their descriptors.
        constraints: Their values of the constraints, likewise.
    """

    candidates: Float[np.ndarray, "trials size params"]
    genotypes: Float[np.ndarray, "size params"]
    given: Int[np.ndarray, " size"]
    failed: Int[np.ndarray, " size"]
    filled: Bool[np.ndarray, " size"]
    fitness: Float[np.ndarray, "size samples"]
    descriptors: Float[np.ndarray, "size samples d"]
    constraints: Float[np.ndarray, "size constraints"]

    @classmethod
    def begin(
        cls, genotypes: Float[np.ndarray, "size params"], samples: int, num_descriptors: int, num_constraints: int
    ) -> Generation:
        """Return a generation without results."""
        size = len(genotypes)
        return cls(
            candidates=genotypes[None],
            genotypes=np.array(genotypes),
            given=np.zeros(size, np.int64),
            failed=np.zeros(size, np.int64),
            filled=np.zeros(size, bool),
            fitness=np.full((size, samples), np.nan),
            descriptors=np.full((size, samples, num_descriptors), np.nan),
            constraints=np.full((size, num_constraints), np.nan),
        )

    @property
    def usable(self) -> Bool[np.ndarray, " size"]:
        """Whether a place has a result that has not failed."""
        return self.filled & np.isfinite(self.fitness).all(axis=1)

    @property
    def size(self) -> int:
        """Number of places."""
        return len(self.filled)

    @property
    def is_complete(self) -> bool:
        """Whether all places are filled."""
        return bool(self.filled.all())

    @property
    def num_waiting(self) -> Int[np.ndarray, " size"]:
        """Candidates of each place that are being evaluated."""
        return self.given - self.failed

    @property
    def open_places(self) -> list[int]:
        """Places without a result."""
        return np.flatnonzero(~self.filled).tolist()

    def next_place(self) -> int:
        """Return the place whose next candidate is needed most: the open one with the fewest candidates under way."""
        return int(np.argmin(np.where(self.filled, np.iinfo(np.int64).max, self.num_waiting)))

    def upcoming(self, place: int | list[int], draw: Callable[[int], np.ndarray]) -> np.ndarray:
        """Return the next candidate of a place, or of several different ones.

        `draw(trial)` draws a further candidate for every place of the generation.
        """
        trial = self.given[place]
        while np.any(trial >= len(self.candidates)):
            self.candidates = np.concatenate([self.candidates, draw(len(self.candidates))[None]])
        return self.candidates[trial, place]

    def give(self, place: int | list[int], draw: Callable[[int], np.ndarray]) -> np.ndarray:
        """Return `upcoming`, and note that it was given out."""
        genotypes = self.upcoming(place, draw)
        self.given[place] += 1
        return genotypes

    def fill(
        self,
        place: int | slice,
        genotype: np.ndarray,
        fitness: np.ndarray,
        descriptor: np.ndarray,
        constraints: np.ndarray,
    ) -> None:
        """Store the result of a place, or of several ones."""
        self.filled[place], self.genotypes[place] = True, genotype
        self.fitness[place], self.descriptors[place], self.constraints[place] = fitness, descriptor, constraints

    def fail(self, place: int) -> bool:
        """Note that a candidate failed; return whether the place counts as failed now."""
        self.failed[place] += 1
        self.filled[place] = self.failed[place] >= TRIALS
        return bool(self.filled[place])

    def check(self, samples: int, num_params: int, num_descriptors: int, num_constraints: int) -> None:
        """Raise a `ValueError` where shapes or types do not fit each other or a search."""
        size = self.size
        shapes = {
            "genotypes": (size, num_params),
            "fitness": (size, samples),
            "descriptors": (size, samples, num_descriptors),
            "constraints": (size, num_constraints),
            **dict.fromkeys(("given", "failed", "filled"), (size,)),
        }
        kinds = {"given": "i", "failed": "i", "filled": "b"}
        for name, shape in {**shapes, "candidates": (len(self.candidates), size, num_params)}.items():
            array = getattr(self, name)
            if array.shape != shape or array.dtype.kind != kinds.get(name, "f"):
                raise ValueError(name)
