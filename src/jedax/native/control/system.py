"""The part of a `brax.System` that native code simulates, as arrays by the names of `control.h`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

_SHAPES = ("plane", "sphere", "capsule")  # `control::Shape`
_FREEDOM = {"f": 0, "1": 1, "2": 2, "3": 3}


class Unsupported(ValueError):
    """What a system has and native code has not, by name."""


def model(system: Any, substeps: int) -> dict[str, Any]:
    """Return what C++ reads of a system that goes `substeps` substeps in a control step.

    Raises `Unsupported` with the names of everything that native code cannot simulate.
    """
    missing: list[str] = []
    timestep = float(system.opt.timestep)
    found = {
        "timestep": timestep,
        "substeps": int(substeps),
        "gravity": _array(system.gravity),
        "linear_decay": float(np.exp(_array(system.vel_damping) * timestep)),
        "angular_decay": float(np.exp(_array(system.ang_damping) * timestep)),
        "push_rate": float(system.baumgarte_erp) / timestep,
        "coordinates": int(system.q_size()),
    }
    if system.enable_fluid:
        missing.append("a fluid")
    turn, joint_turn = _array(system.link.transform.rot), _array(system.link.joint.rot)
    frames = np.array([_product(a, b) for a, b in zip(turn, joint_turn, strict=True)])
    widths = [_FREEDOM[kind] or 6 for kind in system.link_types]  # degrees of freedom of each link
    found |= _links(system, frames, widths) | _freedom(system, np.repeat(_matrices(frames), widths, axis=0))
    found |= _motors(system, missing) | _shapes(system, missing)
    if missing:
        raise Unsupported(", ".join(missing))
    return found


def _links(system: Any, frames: np.ndarray, widths: list[int]) -> dict[str, Any]:
    """Return the links and their joints; `frames` are the rotations from joints to parents, as quaternions."""
    link, parents = system.link, np.array(system.link_parents)
    inertia = link.inertia
    center = _array(inertia.transform.pos)
    turned = _matrices(_array(inertia.transform.rot))
    diagonal = np.diagonal(_array(inertia.i), axis1=1, axis2=2) ** (1 - float(system.spring_inertia_scale))
    parent_center = np.where(parents[:, None] < 0, 0, center[parents])
    joint, joint_turn = _array(link.joint.pos), _array(link.joint.rot)
    reach = _array(link.transform.pos) + np.einsum("lij,lj->li", _matrices(_array(link.transform.rot)), joint)
    starts = np.cumsum(widths)[:-1]
    turns, slides = (np.split(_array(axes), starts) for axes in (system.dof.motion.ang, system.dof.motion.vel))
    axes, parity = map(np.array, zip(*map(_axes, turns, slides), strict=True))
    return {
        "parents": parents.astype(np.int32),
        "freedom": np.array([_FREEDOM[kind] for kind in system.link_types], np.int32),
        "mass": _array(inertia.mass) ** (1 - float(system.spring_mass_scale)),
        "center": center,
        "inertia": _six(turned, diagonal),
        "inverse_inertia": _six(turned, 1 / diagonal),
        "anchor": joint - center,
        "axes": np.einsum("lij,lkj->lki", _matrices(joint_turn), axes),
        "parent_anchor": reach - parent_center,
        "parent_reach": reach,
        "parent_axes": np.einsum("lij,lkj->lki", _matrices(frames), axes),
        "frame": joint_turn,
        "parent_frame": frames,
        "parity": parity,
        "stiffness": _array(link.constraint_stiffness),
        "damping": _array(link.constraint_vel_damping),
        "limit_stiffness": _array(link.constraint_limit_stiffness),
        "angular_damping": _array(link.constraint_ang_damping),
    }


def _freedom(system: Any, frames: np.ndarray) -> dict[str, Any]:
    """Return the degrees of freedom; `frames` are the matrices from their joints to the parents."""
    turns, slides = _array(system.dof.motion.ang), _array(system.dof.motion.vel)
    endless = np.full(len(turns), np.inf)
    lowest, highest = system.dof.limit or (-endless, endless)
    return {
        "turns": turns.any(axis=1).astype(np.int32),
        "slides": np.einsum("dij,dj->di", frames, slides),
        "lowest": _array(lowest),
        "highest": _array(highest),
    }


def _motors(system: Any, missing: list[str]) -> dict[str, Any]:
    motors = system.actuator
    if _array(motors.bias_q).any() or _array(motors.bias_qd).any():
        missing.append("a motor whose force depends on position or speed")
    inputs, forces = _array(motors.ctrl_range), _array(motors.force_range)
    return {
        "motor_dofs": np.asarray(motors.qd_id).astype(np.int32),
        "motor_lowest": inputs[:, 0], "motor_highest": inputs[:, 1],
        "motor_gain": _array(motors.gain), "motor_gear": _array(motors.gear),
        "motor_weakest": forces[:, 0], "motor_strongest": forces[:, 1],
    }  # fmt: skip


def _shapes(system: Any, missing: list[str]) -> dict[str, Any]:
    """Return the shapes that may touch others, and the pairs of them, as MuJoCo pairs them."""
    import mujoco as _mujoco  # which Brax needs; the numbers of its enumerations change from version to version

    mujoco: Any = _mujoco  # its stubs lack most of it
    scene = system.mj_model
    if scene.npair:
        missing.append("contacts named one by one")
    if any(scene.numeric(i).name in ("max_contact_points", "max_geom_pairs") for i in range(scene.nnumeric)):
        missing.append("a limit of the number of contacts")
    names = [mujoco.mjtGeom(kind).name for kind in np.asarray(system.geom_type).tolist()]
    kinds = [name.removeprefix("mjGEOM_").lower() for name in names]
    links = np.asarray(system.geom_bodyid) - 1
    excluded = {tuple(sorted((int(s) >> 16, int(s) & 0xFFFF))) for s in scene.exclude_signature}
    keep_parents = bool(scene.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)

    def may_touch(a: int, b: int) -> bool:
        bits = (scene.geom_contype[a] & scene.geom_conaffinity[b]) | (scene.geom_contype[b] & scene.geom_conaffinity[a])
        one, other = links[a], links[b]
        related = one >= 0 and other >= 0 and (system.link_parents[one] == other or system.link_parents[other] == one)
        named = tuple(sorted((one + 1, other + 1))) in excluded
        return bool(bits) and one != other and not (related and not keep_parents) and not named

    # In the order of their kinds: planes, spheres, capsules
    order = np.argsort(np.asarray(system.geom_type), kind="stable")
    pairs = [(a, b) for a, b in itertools.combinations(order.tolist(), 2) if may_touch(a, b)]
    for a, b in pairs:
        if not {kinds[a], kinds[b]} <= set(_SHAPES) or kinds[b] == "plane":
            missing.append(f"contacts of a {kinds[a]} and a {kinds[b]}")
    used = sorted({shape for pair in pairs for shape in pair})
    number = {shape: i for i, shape in enumerate(used)}
    friction, priority = _array(system.geom_friction)[:, 0], scene.geom_priority
    center = np.vstack([_array(system.link.inertia.transform.pos), np.zeros(3)])  # the last one is the world's
    turned = _matrices(_array(system.geom_quat))

    def mixed(a: int, b: int) -> float:
        if priority[a] != priority[b]:
            return friction[a if priority[a] > priority[b] else b]
        return max(friction[a], friction[b])

    sizes = _array(system.geom_size)[used].reshape(-1, 3)
    elasticity = _array(system.elasticity)
    return {
        "shape_kinds": np.array([_SHAPES.index(kinds[shape]) for shape in used if kinds[shape] in _SHAPES], np.int32),
        "shape_links": links[used].astype(np.int32),
        "shape_places": _array(system.geom_pos)[used].reshape(-1, 3) - center[links[used]].reshape(-1, 3),
        "shape_axes": turned[used].reshape(-1, 3, 3).transpose(0, 2, 1),
        "shape_sizes": sizes,
        "pair_shapes": np.array([[number[a], number[b]] for a, b in pairs], np.int32).reshape(-1, 2),
        "pair_friction": np.array([mixed(a, b) for a, b in pairs]),
        "pair_bounce": np.array([(elasticity[a] + elasticity[b]) / 2 for a, b in pairs]),
    }


def _axes(turns: np.ndarray, slides: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the three axes of a joint, one in a row, from which its angles are measured, and their handedness.

    Axes of hinges stay what they are; perpendicular ones fill up to three (Brax's `link_to_joint_frame`).
    """
    count = len(turns)
    turning = np.any(turns, axis=1).tolist()
    if count > 3 or not any(turning):
        return np.eye(3), 1.0
    if count == 1:
        return np.array([turns[0], *_perpendiculars(turns[0])]), 1.0
    if not slides.any():
        third = np.cross(turns[0], turns[1])
        return np.array([turns[0], turns[1], third]), float(np.dot(third, turns[2])) if count == 3 else 1.0
    b, c = zip(*map(_perpendiculars, turns), strict=True)
    if count == 2:
        first = turns[0] if turning[0] else c[1]
        second = turns[1] if turning[1] else b[0]
    else:
        first = turns[0] if turning[0] else c[1] if turning[1] else b[2]
        second = turns[1] if turning[1] else b[0] if turning[0] else c[2]
    return np.array([first, second, np.cross(first, second)]), 1.0


def _perpendiculars(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not a.any():
        return np.zeros(3), np.zeros(3)
    b = np.array([0.0, 1.0, 0.0]) if -0.5 < a[1] < 0.5 else np.array([0.0, 0.0, 1.0])
    b = b - a * a.dot(b)
    b = b / np.linalg.norm(b)
    return b, np.cross(a, b)


def _array(values: Any) -> np.ndarray:
    return np.asarray(values, np.float64)


def _six(turned: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """Return xx, xy, xz, yy, yz and zz of the inertia of each link in its own axes."""
    full = np.einsum("lij,lj,lkj->lik", turned, diagonal, turned)
    return full[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of two quaternions."""
    scalar = a[0] * b[0] - a[1:] @ b[1:]
    return np.array([scalar, *(a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:]))])


def _matrices(quaternions: np.ndarray) -> np.ndarray:
    """Return the rotation matrices of quaternions `(n, 4)`, real part first."""
    w, x, y, z = (quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)).T
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]).transpose(2, 0, 1)  # fmt: skip
