"""The connection of this process to a Ray cluster."""

from __future__ import annotations

import os
import secrets
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from jedax.errors import fail
from jedax.imports import require

_DEFAULTS = {"RAY_USAGE_STATS_ENABLED": "0"}
# Ray listens on all addresses of a machine: a cluster that is started here answers only those who know this token.
_TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def connect(address: str | None, settings: Mapping[str, Any]) -> tuple[Any, bool]:
    """Return the module `ray`, connected to a cluster, and whether this call has connected it.

    Args:
        address: As in `ray.init`; None: a cluster is started on this machine.
        settings: More arguments of `ray.init`, for a cluster that is started here.

    Raises:
        JedaxError: Ray is not installed, or the cluster does not answer.
    """
    loaded = sys.modules.get("ray")
    if loaded is not None and loaded.is_initialized():  # by other code of this process; on a node, by Ray itself
        return loaded, False
    # Ray reads the token when it is imported.
    variables = _DEFAULTS | (_TOKEN if address is None and loaded is None else {})
    os.environ.update({name: value for name, value in variables.items() if name not in os.environ})
    ray: Any = require("ray", "ray", "engine")
    where = {"address": "local", "include_dashboard": False, **settings} if address is None else {"address": address}
    try:
        with warnings.catch_warnings():
            # JAX warns of every fork; a process that Ray forks becomes another program at once.
            warnings.filterwarnings("ignore", message=r".*os\.fork\(\)", category=RuntimeWarning)
            ray.init(log_to_driver=False, logging_level="ERROR", **where)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise fail(
            "address",
            expected="a Ray cluster that answers",
            received=f"{address or 'none started'} ({' '.join(str(error).split())})",
            remedy="check it with: ray status --address ADDRESS",
        ) from None
    return ray, True
