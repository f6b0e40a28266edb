"""Evaluation functions of the tests. A marker, the path of a file, tells the first attempt from later ones."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np


def sphere(genotypes):
    """Return values that are exact in float32."""
    return -np.abs(genotypes).max(axis=1), np.clip(genotypes[:, :2], -1, 1)


sphere.num_params = 3
sphere.descriptor_lows = (-1.0, -1.0)
sphere.descriptor_highs = (1.0, 1.0)


def distant(genotypes):
    """Return descriptors in a box of width 1 around 1e8."""
    return -np.square(genotypes).sum(axis=1), 1e8 + 1 / (1 + np.exp(-genotypes[:, :2]))


distant.num_params, distant.is_noisy = 3, False
distant.descriptor_lows, distant.descriptor_highs = (1e8, 1e8), (1e8 + 1, 1e8 + 1)


def make(marker="", seconds=30.0, how="", bad=5.0):
    """Return a sphere function that fails if the first parameter of a genotype is `bad` or more."""

    def evaluate(genotypes):
        if (genotypes[:, 0] >= bad).any() and not (marker and Path(marker).exists()):
            if marker:
                Path(marker).touch()
            if how == "raise":
                raise ArithmeticError("out of reach")
            if how == "sys.exit":
                sys.exit(3)
            if how == "interrupt":
                raise KeyboardInterrupt
            if how == "hang":
                time.sleep(seconds)
            elif how == "exit":
                os._exit(7)
            elif how == "real-time signal":
                os.kill(os.getpid(), 40)
            elif how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
        return sphere(genotypes)

    return evaluate


def uneven():
    """Return a sphere function whose number of descriptors depends on the genotypes."""
    return lambda genotypes: (-np.abs(genotypes).max(axis=1), genotypes[:, : 2 if genotypes[0, 0] > 0 else 1])


def forks(pids):
    """Return a sphere function of which a child process returns first, with other values; its pid goes to a file."""

    def evaluate(genotypes):
        child = os.fork()
        if not child:
            return sphere(genotypes + 1)
        with open(pids, "a") as file:
            file.write(f"{child}\n")
        os.waitpid(child, 0)
        return sphere(genotypes)

    return evaluate


def prints():
    """Return a sphere function that prints a lot."""

    def evaluate(genotypes):
        for stream in (sys.stdout, sys.stderr):
            print("x" * 100_000, file=stream, flush=True)
        return sphere(genotypes)

    return evaluate


def replies_twice():
    """Return a sphere function that sends a reply of its own, as a process that it started could do."""
    connection = Connection(int(sys.argv[1]))

    def evaluate(genotypes):
        connection.send((0, [("ok", sphere(genotypes + 1))]))
        return sphere(genotypes)

    return evaluate


def starts_slowly():
    time.sleep(2)
    return sphere


def dies_at_start():
    os._exit(3)


def naps(genotypes):
    """Sleep as long as a file exists."""
    while Path(os.environ["JEDAX_TEST_NAP"]).exists():
        time.sleep(0.05)
    return sphere(genotypes)


WAYS_TO_FAIL = ("nan", "infinite", "raised", "misshapen", "timed_out", "died")


def fails_in_every_way(genotypes):
    """Fail as the first parameter says: 100 for the first of `WAYS_TO_FAIL`, 101 for the second, and so on."""
    fitness, descriptors = sphere(genotypes)
    for row, first in enumerate(genotypes[:, 0]):
        how = dict(zip(range(100, 106), WAYS_TO_FAIL, strict=True)).get(int(first))
        if how == "nan":
            fitness[row] = np.nan
        elif how == "infinite":
            descriptors[row, 1] = -np.inf
        elif how == "raised":
            raise ArithmeticError("out of reach")
        elif how == "misshapen":
            return fitness, descriptors[:, :1]
        elif how == "timed_out":
            time.sleep(600)
        elif how == "died":
            os.kill(os.getpid(), signal.SIGKILL)
    return fitness, descriptors


def named(genotypes):
    return sphere(genotypes)


named.descriptor_names = ("speed", "height")


def tenths(genotypes):
    """Return descriptors that are multiples of 0.1."""
    return sphere(genotypes)[0], np.round(np.abs(np.sin(genotypes[:, :2])), 1)


tenths.num_params, tenths.descriptor_lows, tenths.descriptor_highs = 3, (0.0, 0.0), (1.0, 1.0)

for name in ("num_params", "descriptor_lows", "descriptor_highs"):
    setattr(naps, name, getattr(sphere, name))
    setattr(named, name, getattr(sphere, name))
    setattr(fails_in_every_way, name, getattr(sphere, name))


def measured(genotypes):
    """Return descriptors in units of their own, some of them not finite."""
    fitness, descriptors = sphere(genotypes)
    descriptors = 7 * genotypes[:, :2] + np.float32([100, -3])
    descriptors[0] = np.inf
    return fitness, descriptors


measured.num_params = 3
measured.chunk = 16


def noisily(genotypes):
    """Return descriptors with noise from nowhere."""
    fitness, descriptors = sphere(genotypes)
    return fitness, descriptors + np.random.default_rng().normal(size=descriptors.shape)


noisily.num_params = 3


def constant(genotypes):
    return genotypes.sum(axis=1), np.ones((len(genotypes), 2))


def partly(genotypes):
    """Fail at every attempt if the first two parameters are positive."""
    if (genotypes[:, :2] > 0).all(axis=1).any():
        raise ArithmeticError("out of reach")
    return sphere(genotypes)


def always_raises(genotypes):
    raise ArithmeticError("never")


def alone(genotypes):
    return genotypes.sum(axis=1)


def three(genotypes):
    return genotypes[:, 0], genotypes[:, :2], genotypes[:, :1]


def strange_descriptors(genotypes):
    return genotypes.sum(axis=1), genotypes[:, :3]


def words(genotypes):
    return ["good"] * len(genotypes), genotypes[:, :2]


def scalar(genotypes):
    return genotypes.sum(), genotypes[:, :2]


def lengths(episode):
    """Return the length and the return of an episode."""
    assert len(episode.observations) == len(episode.actions) + 1 == len(episode.infos) + 1
    return [len(episode.rewards), sum(episode.rewards)]


lengths.descriptor_names = ("steps", "return")


def three_numbers(episode):
    return [1, 2, 3]


def velocity(state):
    """Of a Playground environment's state."""
    return state.data.qvel[:2]


not_callable = 3


def spring(rows):
    """A function with a space: rows are dicts."""
    fitness = np.array([-abs(row["gain"] - 7) - row["teeth"] - (row["metal"] == "brass") for row in rows])
    return fitness, np.array([[np.log10(row["gain"]), row["teeth"] / 10] for row in rows])


spring.space = {
    "gain": {"low": 0.1, "high": 400, "log": True},
    "teeth": {"low": 1, "high": 9, "integer": True},
    "metal": {"choices": ["steel", "brass"]},
}
spring.descriptor_lows, spring.descriptor_highs = (-1, 0), (3, 1)


def starting(file):
    """A factory of functions that start a program which never ends."""

    def evaluate(genotypes):
        code = (
            "import os, sys, time; from pathlib import Path; new = Path(sys.argv[1] + '.new');"
            "new.write_text(f'{os.getpid()} {len(sys.stdin.read())}'); new.rename(sys.argv[1]); time.sleep(1000)"
        )
        subprocess.run([sys.executable, "-c", code, file])

    return evaluate
