"""Functions that worker processes import."""

import os
import subprocess
import sys
import time

import numpy as np

OPTIMUM = np.array([0.3, -1.2, 2.0])


def sphere(x):
    return float(np.square(x - OPTIMUM).sum())


def light(x):
    assert "jax" not in sys.modules
    return sphere(x)


def sometimes_slow(x):
    if x[0] > 2:
        time.sleep(1)
    return sphere(x)


def noting(x):
    began = time.monotonic()
    value = sometimes_slow(x)
    with open(os.environ["JEDAX_TEST_NOTES"], "a") as file:
        file.write(f"{began} {time.monotonic()}\n")
    return value


def deadly(x):
    time.sleep(0.02)  # others are evaluated meanwhile
    if x[0] > 2:
        with open(os.environ["JEDAX_TEST_NOTES"], "a") as file:
            file.write("died\n")
        os._exit(3)
    return sphere(x)


def leaving(x):
    if x[0] > 2:
        sys.exit("no licence")
    return sphere(x)


def always_hanging(x):
    time.sleep(600)


def hanging(x):
    if os.path.exists(os.environ["JEDAX_TEST_NOTES"]):
        time.sleep(600)
    if np.square(x - OPTIMUM).sum() < 4:
        with open(os.environ["JEDAX_TEST_NOTES"], "a") as file:
            file.write("hangs\n")
    return sphere(x)


def solving(x):
    """Start a program that does not end for some solutions, and note it."""
    if x[0] > 2:
        program = subprocess.Popen(["sleep", "600"])
        with open(os.environ["JEDAX_TEST_NOTES"], "a") as file:
            file.write(f"{program.pid}\n")
        program.wait()
    return sphere(x)


def always_deadly(x):
    os._exit(3)
