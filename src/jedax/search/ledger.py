"""Which solutions `Optimizer` gave out, which results it was told, and which results belong to which solutions.

Where all parameters are whole numbers or options, the ledger also keeps the results, so that no solution needs to be
evaluated twice.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jedax.errors import fail, is_whole
from jedax.search.told import Print, Result, fingerprints
from jedax.search.units import Units
from jedax.types import Float, Int

_MOST_AGAIN = 20  # generations of results in a row that were told before
_REMEMBERED = 10_000  # solutions whose results are known when they are told again; late ones that can be told
_SAME = 1e-6  # difference, in coordinates, up to which a told solution is the one that was asked for


@dataclass
class Opened:
    """Solutions that were asked for and not told yet, from the oldest.

    Attributes:
        numbers: Number of each solution, ascending.
        generations: Number of the generation that each is for.
        places: Its place in that generation.
        genotypes: The solutions as the method asked for them; they need not be within bounds.
        values: The same in the user's units, within bounds.
    """

    numbers: Int[np.ndarray, " n"]
    generations: Int[np.ndarray, " n"]
    places: Int[np.ndarray, " n"]
    genotypes: Float[np.ndarray, "n genotype"]
    values: Float[np.ndarray, "n parameters"]

    @classmethod
    def none(cls, genotype_size: int, num_values: int) -> Opened:
        """Return no solutions."""
        whole = np.zeros(0, np.int64)
        return cls(whole, whole, whole, np.zeros((0, genotype_size)), np.zeros((0, num_values)))

    def __len__(self) -> int:
        """Return the number of solutions."""
        return len(self.numbers)

    def append(self, more: Opened) -> None:
        """Add solutions with higher numbers."""
        for name, rows in vars(more).items():
            setattr(self, name, np.concatenate([getattr(self, name), rows]))

    def rows(self, numbers: Any) -> Any:
        """Return the rows of open solutions by their numbers, each of which must be open."""
        return np.searchsorted(self.numbers, numbers)

    def remove(self, numbers: list[int]) -> None:
        """Remove solutions by their numbers."""
        if numbers:
            stays = ~np.isin(self.numbers, numbers)
            for name, rows in vars(self).items():
                setattr(self, name, rows[stays])


class Ledger:
    """Which solutions were given out and have no result yet, and which were told with which result.

    Attributes:
        opened: Solutions without a result.
        told: Fingerprints of solutions and of their results, from the oldest.
        known: Results by the fingerprint of their solution, from the oldest, where they are kept.
        next_number: Number of the next solution that is given out.
    """

    def __init__(self, units: Units, *, is_noisy: bool, keeps_results: bool):
        self.units, self.is_noisy, self.keeps_results = units, is_noisy, keeps_results
        self.forget_open()
        self.told: OrderedDict[int, int] = OrderedDict()
        self.known: OrderedDict[int, Result] = OrderedDict()
        self.next_number = 0
        self._has_warned = False

    def forget_open(self) -> None:
        """Note that no solution waits for a result any more."""
        self._num_strange = 0  # results in a row of solutions that nobody asked for
        self._num_again = 0  # results in a row that were told before
        self.opened = Opened.none(self.units.num_params, self.units.num_values)

    def give(self, generation: int, places: list[int], genotypes: np.ndarray) -> list[int]:
        """Note that candidates of some places were given out; return their numbers. Forget the oldest of many."""
        numbers = np.arange(self.next_number, self.next_number + len(places))
        if places:
            of = np.full(len(places), generation)
            self.opened.append(Opened(numbers, of, np.array(places), genotypes, self.units.values(genotypes)))
            late = self.opened.numbers[self.opened.generations < generation]
            self.opened.remove(late[:-_REMEMBERED].tolist())  # those whose evaluation was lost are never told
        self.next_number += len(places)
        return numbers.tolist()

    def shown(self, rows: Any) -> Any:
        """Return some of the open solutions as the user gets them."""
        return self.units.shown(self.opened.genotypes[rows], self.opened.values[rows])

    def latest(self, generation: int, size: int) -> Int[np.ndarray, " size"]:
        """Return the number of the latest open solution of each place of a generation, -1 where there is none."""
        latest = np.full(size, -1)
        is_of_this = self.opened.generations == generation
        np.maximum.at(latest, self.opened.places[is_of_this], self.opened.numbers[is_of_this])
        return latest

    def checked(self, ids: Sequence[int | None], number: int) -> list[int | None]:
        """Return the numbers of solutions as whole numbers, an error unless all are open and none is given twice."""
        # Other programs may write 3.0 for 3.
        found = [int(one) if isinstance(one, float) and one.is_integer() else one for one in ids]
        seen, numbers = set[int](), self.opened.numbers
        whole = [one for one in found if is_whole(one)]
        opened = set(numbers[np.isin(numbers, whole)].tolist())
        if len(found) != number:
            raise fail("ids", expected=f"{number} numbers", received=len(found), remedy="give one per solution")
        for one in found:
            if one is None:
                continue
            if not is_whole(one) or one not in opened:
                known = ", ".join(map(str, numbers[:10])) + ", ..." * (len(numbers) > 10)
                expected = f"one of those asked for and not told yet ({known or 'none'})"
                was_given = is_whole(one) and 0 <= one < self.next_number
                received = f"{one}, which was told or given up already" if was_given else repr(one)
                raise fail("id", expected=expected, received=received, remedy="leave it out, or check it")
            if one in seen:
                raise fail("id", expected="one result per solution", received=f"{one} twice", remedy="leave one out")
            seen.add(one)
        return [None if one is None else int(one) for one in found]

    def with_ids(self, genotypes: Any, ids: list[int | None]) -> list[Any]:
        """Return solutions, those with numbers as they were asked for."""
        known = iter(self.shown(self.opened.rows([one for one in ids if one is not None])))
        return [given if one is None else next(known) for given, one in zip(genotypes, ids, strict=True)]

    def answers(self, generation: int, size: int, results: Result, ids: list[int | None] | None) -> bool:
        """Whether results are those of all places of a generation and of nothing else, in its order."""
        opened = self.opened
        if not len(results.values) == len(opened) == size or ids not in (None, opened.numbers.tolist()):
            return False
        in_order = (opened.places == np.arange(size)) & (opened.generations == generation)
        return in_order.all() and not results.failed.any() and np.array_equal(opened.values, results.values)

    def match(self, results: list[Result], prints: list[Print], ids: Sequence[int | None]) -> list[int | None]:
        """Return the number of the open solution of each result; None: there is none; -1: it is known already.

        An error where a solution was told before with another result, or is out of its bounds.
        """
        free = ~np.isin(self.opened.numbers, [one for one in ids if one is not None])
        marks = fingerprints(self.opened.values) if None in ids else free  # nobody reads them if all have numbers
        now: dict[int, int] = {}
        numbers = []
        for result, (solution, outcome), given in zip(results, prints, ids, strict=True):
            known = now.get(solution, self.told.get(solution))
            is_known, is_same = known is not None, known == outcome
            if given is None:
                row = self._open_row(result.values, free, marks == solution, self.is_noisy or not is_known)
                if row is None:
                    given = self._other(result, is_known, is_same)
                else:
                    given, free[row] = int(self.opened.numbers[row]), False
            numbers.append(given)
            if not result.failed:
                now[solution] = outcome
        return numbers

    def warn_of_changed(self, numbers: list[int | None], prints: list[Print], size: int) -> None:
        """Warn once where at least `size` results in a row are of solutions that nobody asked for, and others wait.

        `numbers` are those from `match`. Evaluations of known solutions do not count where they are noisy. An error
        where many results in a row were told before: a loop until the budget is spent would not end.
        """
        self._num_again = self._num_again + len(numbers) if numbers and set(numbers) == {-1} else 0
        if self._num_again > _MOST_AGAIN * size and len(self.opened):
            received = f"{self._num_again} results in a row that were told before"
            remedy = "tell solutions as ask() returned them, or by their numbers: ask_ids() and tell(..., ids=...)"
            raise fail("tell", expected="results of solutions from ask()", received=received, remedy=remedy)
        if any(number not in (None, -1) for number in numbers):
            self._num_strange = 0
            return
        self._num_strange += sum(not (self.is_noisy and solution in self.told) for solution, _ in prints)
        if self._num_strange >= size and len(self.opened) and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"the last {self._num_strange} solutions told are not among those that ask() returned, and "
                f"{len(self.opened)} of those still wait for a result. If you round or clip solutions, tell them as "
                "ask() returned them, or by their numbers: ask_ids() and tell(..., ids=...). Limits and whole numbers "
                "belong in bounds and space.",
                stacklevel=3,
            )

    def _other(self, result: Result, is_known: bool, is_same: bool) -> int | None:
        """Return the number of a result that no open solution waits for: -1 if it is known already, else None."""
        if is_known and not self.is_noisy:
            if not is_same and not result.failed:
                raise fail(
                    "tell",
                    expected="one result per solution",
                    received=f"another one for {result.values}, which was told before",
                    remedy="give noisy=True to Optimizer if evaluations are noisy",
                )
            return -1
        self.units.genotypes(result.values)  # refused here if it is out of its bounds
        return None

    def _open_row(self, values: np.ndarray, free: np.ndarray, same: np.ndarray, may_differ: bool) -> int | None:
        """Return the row of the oldest open solution that is `same`, or else of the nearest; None: there is none.

        The nearest is the same solution but for a detour through float32, or through a few decimals. `free` are the
        rows that still wait for a result.
        """
        rows = np.flatnonzero(free & same)
        if rows.size:
            return int(rows[0])
        rows = np.flatnonzero(free)
        if not (rows.size and may_differ):
            return None
        known, tolerances = self.opened.values[rows], self.units.tolerances(self.opened.genotypes[rows], _SAME)
        with np.errstate(over="ignore"):
            is_rounded = known.astype(np.float32) == values
        difference = np.where(is_rounded, 0, np.abs(known - values))
        is_close = (difference <= tolerances).all(axis=1)
        farthest = np.where(is_close, (difference / np.maximum(tolerances, 1e-300)).max(axis=1), np.inf)
        return int(rows[np.argmin(farthest)]) if is_close.any() else None  # the oldest of several

    def arrays(self) -> dict[str, Any]:
        """Return all that it knows, as arrays, for `restore`."""
        opened = self.opened
        return {
            "open": {
                "numbers": np.stack([opened.numbers, opened.generations, opened.places], axis=1),
                "genotype": opened.genotypes,
                "values": opened.values,
            },
            "told": np.array(list(self.told.items()), np.int64).reshape(-1, 2),
            "kept": {
                "print": np.array(list(self.known), np.int64),
                **{
                    name: np.array([getattr(one, name) for one in self.known.values()], np.float64)
                    for name in ("fitness", "descriptor", "constraints")
                },
            },
        }

    def restore(self, tree: dict[str, Any], samples: int, num_descriptors: int, num_constraints: int) -> None:
        """Restore what `arrays` returned, but for `next_number`; `ValueError`, or what NumPy raises, if damaged.

        A result has `samples` values, and as many rows of `num_descriptors`.
        """
        self.told = OrderedDict(tree["told"].astype(np.int64).reshape(-1, 2).tolist())
        if self.keeps_results and "kept" in tree:  # files of earlier versions have none
            kept, number, none = tree["kept"], len(tree["kept"]["print"]), np.zeros(0)
            fitness = kept["fitness"].reshape(number, samples)
            descriptors = kept["descriptor"].reshape(number, samples, num_descriptors)
            constraints = kept["constraints"].reshape(number, num_constraints)
            solutions = kept["print"].astype(np.int64).tolist()
            for solution, *row in zip(solutions, fitness, descriptors, constraints, strict=True):
                self.known[solution] = Result(none, none, *row, failed=False)
        numbers, genotypes, values = (tree["open"][key] for key in ("numbers", "genotype", "values"))
        numbers = numbers.astype(np.int64).reshape(-1, 3)
        if len(numbers):
            expected = (len(numbers), self.units.num_params), (len(numbers), self.units.num_values)
            if (genotypes.shape, values.shape) != expected:
                raise ValueError("open")
            self.opened = Opened(numbers[:, 0], numbers[:, 1], numbers[:, 2], genotypes, values)

    def remember(self, prints: Sequence[Print]) -> None:
        """Remember which solutions were told, and what tells their results apart; forget the oldest of many."""
        self.told.update(prints)
        while len(self.told) > _REMEMBERED:
            self.told.popitem(last=False)

    def keep(self, prints: Sequence[Print], results: Sequence[Result]) -> None:
        """Keep the results of solutions, none of which failed; forget the oldest of many."""
        self.known.update((solution, result) for (solution, _), result in zip(prints, results, strict=True))
        while len(self.known) > _REMEMBERED:
            self.known.popitem(last=False)

    def note_constraints(self, number: int) -> None:
        """Note how many constraints there are, as the first results with violations tell."""
        first = next(iter(self.known.values()), None)  # all have as many
        if first is not None and len(first.constraints) != number:
            none = np.zeros(number)
            self.known = OrderedDict((key, one._replace(constraints=none)) for key, one in self.known.items())

    @property
    def knows_all(self) -> bool:
        """Whether the results of all solutions of the space are known."""
        space = self.units.space
        return self.keeps_results and space is not None and len(self.known) >= space.num_solutions

    def known_results(self, genotypes: np.ndarray) -> list[Result | None]:
        """Return the known result of each genotype; None: there is none, or results are not kept."""
        if not self.known:
            return [None] * len(genotypes)
        found = map(self.known.get, fingerprints(self.units.values(genotypes)).tolist())
        return [one and one._replace(genotype=genotype) for one, genotype in zip(found, genotypes, strict=True)]

    def repeats(self, generation: int, genotypes: np.ndarray) -> np.ndarray:
        """Return which genotypes have the values of an open solution of a generation, or of an earlier one of them.

        Open solutions of former generations do not count, since their evaluation may be lost.
        """
        prints = fingerprints(self.units.values(genotypes))
        _, first = np.unique(prints, return_index=True)
        is_first = np.isin(np.arange(len(prints)), first)
        return ~is_first | np.isin(prints, fingerprints(self.opened.values[self.opened.generations == generation]))
