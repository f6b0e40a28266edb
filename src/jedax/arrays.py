"""Arrays that come from outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from jedax.errors import fail


def numbers(name: str, values: Any, shape: tuple[int | None, ...], if_none: str, if_misshapen: str) -> np.ndarray:
    """Return numbers as float32 if they have that shape, where None stands for any size but 0.

    Args:
        name: What errors call them.
        values: The numbers.
        shape: The shape wanted.
        if_none: What to do where they are no numbers.
        if_misshapen: What to do where they have another shape.

    Raises:
        JedaxError: They have another shape, or are no numbers.
    """
    wanted = "(" + ", ".join("d" if size is None else str(size) for size in shape) + ",)"[len(shape) > 1 :]
    try:
        array = np.asarray(values, np.float32)
    except (TypeError, ValueError):
        raise fail(
            name, expected=f"numbers of shape {wanted}", received=type(values).__name__, remedy=if_none
        ) from None
    fits = array.ndim == len(shape) and all(
        size == (1 if wish is None else wish) or (wish is None and size > 0)
        for size, wish in zip(array.shape, shape, strict=False)
    )
    if not fits:
        raise fail(name, expected=f"shape {wanted}", received=array.shape, remedy=if_misshapen)
    return array
