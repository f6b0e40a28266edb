"""Pictures by MuJoCo's renderer, in a process of its own: MuJoCo chooses its OpenGL when it is imported.

Run as a program, it renders: `python -m jedax.tasks.mujoco_film MODEL.mjb Q.npy FRAMES.npy`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

_BACKENDS = ("egl", "osmesa", "")  # the last is MuJoCo's own choice, which needs a screen
_SIZE = 360, 480
_SECONDS = 300


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
            command = [sys.executable, "-m", __name__, *files]
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


if __name__ == "__main__":
    _main(*sys.argv[1:])
