"""Feet and pictures of MuJoCo's models, as gymnasium and Playground have them. This module does not import JAX.

MuJoCo chooses its OpenGL when it is imported, so a process of its own renders:
`python -m jedax.tasks.mujoco MODEL.mjb Q.npy FRAMES.npy`.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jedax.errors import JedaxError, fail

_BACKENDS = ("egl", "osmesa", "")  # the last is MuJoCo's own choice, which needs a screen
_SIZE = 360, 480
_SECONDS = 300


def feet_of(model: Any, feet: Sequence[str]) -> dict[int, int]:
    """Return the number of the foot that each geom is; without names of geoms, those with "foot" in their name are."""
    names = [model.geom(number).name for number in range(model.ngeom)]
    lacking = next((name for name in feet if name not in names), None)
    chosen = list(feet) or [name for name in names if "foot" in name.lower()]
    if lacking is not None or not chosen:
        raise fail(
            "feet",
            expected="names of geoms" if feet else "geoms with 'foot' in their name",
            received=repr(lacking) if feet else "none",
            remedy="choose among " + ", ".join(name for name in names if name) + " (--feet), or another --descriptor",
        )
    return {names.index(name): foot for foot, name in enumerate(chosen)}


def unsuitable(expected: str, received: str) -> JedaxError:
    """Return the error for an environment that lacks what one of the built-in descriptors needs."""
    remedy = "give a function of your own as --descriptor module:function"
    return fail("descriptor", expected=expected, received=received, remedy=remedy)


@contextlib.contextmanager
def quiet_mujoco() -> Iterator[None]:
    """Silence MuJoCo's warnings about model files, which each environment would repeat and log."""
    try:
        mujoco: Any = importlib.import_module("mujoco")
    except ImportError:
        yield
        return
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def render(model: Any, q: np.ndarray) -> tuple[list[np.ndarray], str]:
    """Return pictures of a MuJoCo model with coordinates `q`, `(frames, q)`, or no pictures and the reason.

    The model's camera "track" is used, else one that follows the first body. The variable MUJOCO_GL chooses the OpenGL;
    without it EGL, OSMesa and MuJoCo's default are tried. A picture is `(height, width, 3)` bytes.
    """
    import mujoco

    chosen = os.environ.get("MUJOCO_GL")
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("model.mjb", "q.npy", "frames.npy")]
        mujoco.mj_saveModel(model, files[0])  # type: ignore[attr-defined]
        np.save(files[1], q)
        for backend in (chosen,) if chosen else _BACKENDS:
            environment = os.environ | {"MUJOCO_GL": backend, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            command = [sys.executable, "-P", "-m", __name__, *files]  # without files of the current directory
            try:
                subprocess.run(command, env=environment, capture_output=True, timeout=_SECONDS, check=True)
            except subprocess.TimeoutExpired:
                return [], f"MuJoCo's renderer took longer than {_SECONDS} s"
            except subprocess.CalledProcessError:
                continue
            return list(np.load(files[2])), ""
    return [], f"MuJoCo finds no OpenGL here (MUJOCO_GL={chosen or 'egl, osmesa'}); Mesa brings one, such as libegl1"


def _main(model_file: str, q_file: str, frames_file: str) -> None:
    import mujoco as _mujoco

    mujoco: Any = _mujoco  # its stubs lack most of it
    model = mujoco.MjModel.from_binary_path(model_file)
    model.vis.global_.offheight, model.vis.global_.offwidth = _SIZE
    _without_edges(mujoco, model)
    data = mujoco.MjData(model)
    camera = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, "track")
    if camera < 0:
        camera = mujoco.MjvCamera()
        mujoco.mjv_defaultFreeCamera(model, camera)
        camera.type, camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, 1
    frames = []
    with mujoco.Renderer(model, *_SIZE) as renderer:
        for q in np.load(q_file):
            data.qpos = q
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera=camera)
            frames.append(renderer.render())
    np.save(frames_file, frames)


def _without_edges(mujoco: Any, model: Any) -> None:
    """Make the floors of a model infinite, since robots run off the finite ones; squares keep their size."""
    for plane in np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE):
        size, material = model.geom_size[plane, :2], model.geom_matid[plane]
        if material >= 0 and not model.mat_texuniform[material] and size.all():
            model.mat_texrepeat[material] /= 2 * size  # an infinite floor counts squares per metre
        size[:] = 0


if __name__ == "__main__":
    _main(*sys.argv[1:])
