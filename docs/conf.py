"""How the site is built: `sphinx-build -W -j auto docs docs/_build`, with `pip install '.[docs]'`."""

import os
import subprocess
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).parent))

import jedax

HERE = Path(__file__).parent
project = "jedax"
author = "The jedax developers"
copyright = "The jedax developers"
release = version = jedax.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
default_role = "code"  # docstrings are Markdown
html_theme = "furo"
html_title = "jedax"
html_static_path = []

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "attrs_block"]
myst_heading_anchors = 3
# Every code cell is run, and an error fails the build.
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True
nb_render_markdown_format = "myst"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
add_module_names = False
napoleon_google_docstring = True
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
python_use_unqualified_type_names = True
copybutton_exclude = ".linenos, .gp, .go"


def notebooks(app: object) -> None:
    """Leave the tutorials as notebooks, without outputs, where their pages link to."""
    folder = HERE / "_build" / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    for page in sorted((HERE / "tutorials").glob("[!i]*.md")):
        command = [sys.executable, "-m", "jupytext", "--quiet", "--to", "ipynb"]
        subprocess.run([*command, "--output", str(folder / f"{page.stem}.ipynb"), str(page)], check=True)


def from_markdown(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Turn what docstrings have of Markdown, code and tables, into reStructuredText."""
    found, inside = [], False
    for line in lines:
        text = line.lstrip()
        margin = line[: len(line) - len(text)]
        if text.startswith("```"):
            found += [] if inside else [f"{margin}.. code-block:: python", ""]
            inside = not inside
        elif text.startswith("|") and not inside:
            cells = [cell.strip() for cell in text.strip("|").split("|")]
            if not set(cells[0]) <= {"-", ":"}:
                found.append(f"{margin}- {': '.join(cells)}")
        else:
            found.append(f"    {line}" if inside else line.replace("(*batch", "(batch"))
    lines[:] = found


def setup(app: object) -> None:
    """Let Sphinx call what is defined here."""
    app.connect("builder-inited", notebooks)  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", from_markdown, priority=400)  # type: ignore[attr-defined]
