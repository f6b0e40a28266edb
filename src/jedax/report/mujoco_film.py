"""A film by MuJoCo's renderer, in a process of its own: what draws without a screen must be said before MuJoCo loads.

Run as a program it renders: `python -m jedax.report.mujoco_film MODEL.mjb Q.npy FILM.gif SECONDS_PER_FRAME`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

_BACKENDS = ("egl", "osmesa", "glfw")
_SIZE = 360, 480
_SECONDS = 300


def render(model: Any, q: np.ndarray, film: Path, seconds_per_frame: float) -> str:
    """Write a GIF of a MuJoCo model in postures `q`, `(frames, q)`; followed by its camera "track" or one of ours.

    Returns:
        What is missing, in words; empty: the film was written.
    """
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        stored, postures = Path(folder) / "model.mjb", Path(folder) / "q.npy"
        mujoco.mj_saveModel(model, str(stored))  # type: ignore[attr-defined]
        np.save(postures, q)
        command = [sys.executable, "-m", __name__, str(stored), str(postures), str(film), str(seconds_per_frame)]
        chosen = os.environ.get("MUJOCO_GL")
        for backend in (chosen,) if chosen else _BACKENDS:
            environment = os.environ | {"MUJOCO_GL": backend, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            try:
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS)
            except subprocess.TimeoutExpired:
                return f"MUJOCO_GL={backend} took longer than {_SECONDS} s"
            if done.returncode == 0:
                return ""
    return f"no OpenGL by MUJOCO_GL={chosen}" if chosen else "no OpenGL by EGL, OSMesa or a screen"


def _main(stored: str, postures: str, film: str, seconds_per_frame: str) -> None:
    import mujoco as _mujoco

    from jedax.report.films import write_film

    mujoco: Any = _mujoco  # its stubs lack most of it
    model = mujoco.MjModel.from_binary_path(stored)
    model.vis.global_.offwidth, model.vis.global_.offheight = _SIZE[1], _SIZE[0]
    data = mujoco.MjData(model)
    renderer = mujoco.Renderer(model, *_SIZE)
    camera = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, "track")
    if camera < 0:
        camera = mujoco.MjvCamera()
        mujoco.mjv_defaultFreeCamera(model, camera)
        camera.type, camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, 1
    frames = []
    for posture in np.load(postures, allow_pickle=False):
        data.qpos = posture
        mujoco.mj_forward(model, data)
        renderer.update_scene(data, camera=camera)
        frames.append(renderer.render())
    renderer.close()
    write_film(Path(film), frames, float(seconds_per_frame))


if __name__ == "__main__":
    _main(*sys.argv[1:])
