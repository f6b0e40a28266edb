"""How a page is put together: templates, scripts, and the library that draws charts."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jedax._version import __version__
from jedax.imports import require

FILE = "report.html"
PLOTLY = "plotly.min.js"


def render(
    template: str, *, title: str, data: Mapping[str, Any], scripts: Sequence[str], plotly_path: str | None, **texts: Any
) -> str:
    """Return a page; all texts are escaped.

    Args:
        template: File of the template.
        title: Title of the page.
        data: JSON values for its scripts.
        scripts: Files of scripts, in order.
        plotly_path: Where the page finds the library that draws charts; None: inside itself.
        **texts: What else the template shows.
    """
    from markupsafe import Markup

    def static(name: str) -> Any:
        return Markup((Path(__file__).parent / "static" / name).read_text(encoding="utf-8"))

    # Neither the end of a script nor a comment can stand in JSON written so.
    packed = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return templates().get_template(template).render(
        title=title,
        version=__version__,
        style=static("style.css"),
        data=Markup(packed),
        scripts=[static(name) for name in scripts],
        plotly=Markup("" if plotly_path else plotly_source().replace("</script", "<\\/script")),
        plotly_path=plotly_path,
        **{"live": False, **texts},
    )  # fmt: skip


@functools.cache
def templates() -> Any:
    """Return the templates; they escape what they show.

    Raises:
        JedaxError: The extra `report` is not installed.
    """
    jinja2: Any = require("jinja2", "report", "report")
    return jinja2.Environment(
        loader=jinja2.PackageLoader("jedax.report", "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip


@functools.cache
def plotly_source() -> str:
    """Return the library that draws charts.

    Raises:
        JedaxError: The extra `report` is not installed.
    """
    require("jinja2", "report", "report")
    package: Any = require("plotly", "report", "report")
    folder = Path(package.__file__).parent
    return (folder / "package_data" / PLOTLY).read_text(encoding="utf-8")
