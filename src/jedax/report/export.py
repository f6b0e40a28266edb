"""The best policy of a run as a file for other programs: ONNX, or Python with NumPy alone."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from jedax.errors import fail
from jedax.imports import require
from jedax.report.pictures import writing
from jedax.store.files import write_atomic
from jedax.store.run import Run
from jedax.tasks.policy import PolicyTask

_SCRIPT = '''__doc__ = {title!r}

from pathlib import Path

import numpy as np

_WEIGHTS = dict(np.load(Path(__file__).with_name({weights!r})))
_ACTIVATIONS = {{
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: (1 + np.tanh(x / 2)) / 2,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
    "silu": lambda x: x * (1 + np.tanh(x / 2)) / 2,
}}


def act(observation):
    """Return {actions} numbers in [-1, 1] for an observation of {observations} numbers, or rows of them."""
    values = np.asarray(observation, np.float32)
    for layer in range({layers}):
        values = values @ _WEIGHTS[f"kernel_{{layer}}"] + _WEIGHTS[f"bias_{{layer}}"]
        values = _ACTIVATIONS["tanh" if layer == {last} else "{activation}"](values)
    return values
'''


def export(run: Run, *, onnx: str | Path | None = None, numpy: str | Path | None = None) -> list[Path]:
    """Write the best policy of a run and return the files.

    The network takes rows of observations, the function of the module also a single one. Both return what
    `task.actions` does: numbers in [-1, 1], before they are scaled to the actions of an environment.

    Args:
        run: A run whose task has policies.
        onnx: File of the network as ONNX (operators of version 13); needs the extra [onnx].
        numpy: File of a Python module with a function `act`; its weights are written beside it as `.npz`.

    Raises:
        JedaxError: The task has no policies, or onnx is not installed.
    """
    run.check_code()
    if not isinstance(run.task, PolicyTask):
        remedy = f"take jedax.load(DIR).best().{'genotype' if run.task.space is None else 'parameters'}"
        raise fail("export", expected="a task whose solutions are policies", received=run.task.name, remedy=remedy)
    best, sizes, activation = run.best(), run.task.layer_sizes, run.task.config.activation  # type: ignore[attr-defined]
    genotype = jnp.asarray(best.genotype, jnp.float32)
    layers = [(np.asarray(kernel), np.asarray(bias)) for kernel, bias in run.task.layers(genotype)]
    written = []
    if onnx is not None:
        written.append(Path(onnx))
        with writing("a file", written[-1], "onnx"):
            write_atomic(written[-1], _as_onnx(layers, activation, f"{run.task.name}, {run.config.method}"))
    if numpy is not None:
        script = Path(numpy)
        if script.suffix == ".npz" or not script.name:
            raise fail("numpy", expected="a Python file, such as policy.py", received=numpy, remedy="change the name")
        weights = script.with_suffix(".npz")
        arrays: dict[str, Any] = {}
        for i, (kernel, bias) in enumerate(layers):
            arrays |= {f"kernel_{i}": kernel, f"bias_{i}": bias}
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        text = _SCRIPT.format(
            title=f"The best policy of {run.task.name}, as found by {run.config.method}: fitness {best.fitness:.6g}.",
            weights=weights.name, actions=sizes[-1], observations=sizes[0], layers=len(layers),
            last=len(layers) - 1, activation=activation,
        )  # fmt: skip
        with writing("a file", script, "numpy"):
            write_atomic(weights, buffer.getvalue())
            write_atomic(script, text)
        written += [script, weights]
    return written


def _as_onnx(layers: list[tuple[np.ndarray, np.ndarray]], activation: str, name: str) -> bytes:
    """Return a network as an ONNX model with the input `observation` and the output `action`, rows of any number."""
    require("onnx", "onnx", "onnx")
    from onnx import TensorProto, checker, helper, numpy_helper

    nodes, constants = [], []

    def constant(label: str, value: Any) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value, np.float32), label))
        return label

    def node(kind: str, *inputs: str) -> str:
        label = f"{kind.lower()}_{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [label]))
        return label

    def activate(kind: str, values: str) -> str:
        simple = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid", "elu": "Elu"}
        if kind in simple:
            return node(simple[kind], values)
        if kind == "silu":
            return node("Mul", values, node("Sigmoid", values))
        cube = node("Mul", node("Mul", values, values), values)  # gelu: x times the sigmoid of 2 z
        z = node("Add", values, node("Mul", cube, constant(f"cubic_{len(nodes)}", 0.044715)))
        twice = constant(f"twice_{len(nodes)}", 2 * (2 / np.pi) ** 0.5)
        return node("Mul", values, node("Sigmoid", node("Mul", z, twice)))

    values = "observation"
    for i, (kernel, bias) in enumerate(layers):
        product = node("MatMul", values, constant(f"kernel_{i}", kernel))
        sums = node("Add", product, constant(f"bias_{i}", bias))
        values = activate("tanh" if i == len(layers) - 1 else activation, sums)
    nodes.append(helper.make_node("Identity", [values], ["action"]))
    shapes = ("rows", len(layers[0][0])), ("rows", len(layers[-1][1]))
    inputs, outputs = (
        [helper.make_tensor_value_info(label, TensorProto.FLOAT, shape)]
        for label, shape in zip(("observation", "action"), shapes, strict=True)
    )
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="jedax")
    checker.check_model(model)
    return model.SerializeToString()
