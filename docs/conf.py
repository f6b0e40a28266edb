"""How the site is built: `sphinx-build -W -j auto docs docs/_build`, with `pip install '.[docs]'`.

The code of the tutorials runs once for each state of the package; its results are kept in the user's cache directory.
`JEDAX_PAGES=off` builds without running it, `JEDAX_PAGES=force` runs it always.
"""

import hashlib
import os
import posixpath
import re
import subprocess
import sys
from pathlib import Path

from docutils.nodes import SkipNode
from latex2mathml import converter

os.environ["JAX_PLATFORMS"] = "cpu"

import jax

import jedax
from jedax.search.compiled import keep_compiled_programs

# The pages' own processes share what has been compiled, also with the next build.
keep_compiled_programs()
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(jax.config.jax_compilation_cache_dir)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"

HERE = Path(__file__).parent
# Pages that stand elsewhere in the repository, and where the site has them.
RECORDS = {
    "results/README.md": "record/results.md",
    "results/beyond/README.md": "record/beyond.md",
    "results/beyond/rejected.md": "record/rejected.md",
    "benchmarks/README.md": "record/benchmarks.md",
    "CHANGELOG.md": "record/changelog.md",
    "CONTRIBUTING.md": "record/contributing.md",
}
SHOWN = {to: where for where, to in RECORDS.items()}
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
html_math_renderer = "mathml"  # needs neither a network nor JavaScript

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "attrs_block"]
myst_heading_anchors = 3
# An error in a code cell fails the build.
nb_execution_mode = os.environ.get("JEDAX_PAGES", "cache")
_files = sorted((HERE.parent / "src").rglob("*.py"))
_state = hashlib.sha256(b"".join(file.read_bytes() for file in _files)).hexdigest()[:16]
_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
nb_execution_cache_path = str(_cache / "jedax" / "pages" / _state)
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
# Every method and task has a class of settings named `Config`, so the name alone is no unique reference. Code that was
# not run names no language.
suppress_warnings = ["ref.python", "myst-nb.lexer"]
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


def links(app: object, page: str, source: list[str]) -> None:
    """Let links of the repository work on the site: to pages it has, to files as downloads; fill in the records."""
    shown = SHOWN.get(f"{page}.md")
    if shown:
        app.env.note_dependency(str(HERE.parent / shown))  # type: ignore[attr-defined]
        source[0] = (HERE.parent / shown).read_text(encoding="utf-8")
    where = posixpath.dirname(shown or f"docs/{page}")  # what links are relative to
    here = posixpath.dirname(f"docs/{page}")

    def link(found: re.Match[str]) -> str:
        image, text, path, anchor = found.groups(default="")
        target = posixpath.normpath(posixpath.join(where, path))
        moved = posixpath.relpath(target, here)
        if target in RECORDS:
            return f"[{text}](/{RECORDS[target]}{anchor})"
        if image or target.startswith("docs/"):
            return f"{image}[{text}]({moved}{anchor})"
        if (HERE.parent / target).is_dir():
            return text
        return f"{{download}}`{text.replace('`', '')} <{moved}>`"

    source[0] = re.sub(r"(!?)\[([^\]]*)\]\((?!\w+:|#|/)([^)#\s]+)(#[^)\s]*)?\)", link, source[0])


def inline_mathml(self: object, node: object) -> None:
    """Show a formula within a line."""
    self.body.append(converter.convert(node.astext()))  # type: ignore[attr-defined]
    raise SkipNode


def block_mathml(self: object, node: object) -> None:
    """Show a formula by itself."""
    formula = converter.convert(node.astext(), display="block")  # type: ignore[attr-defined]
    self.body.append(f"<div>{formula}</div>")  # type: ignore[attr-defined]
    raise SkipNode


def setup(app: object) -> None:
    """Let Sphinx call what is defined here."""
    app.connect("builder-inited", notebooks)  # type: ignore[attr-defined]
    app.connect("source-read", links)  # type: ignore[attr-defined]
    app.add_html_math_renderer("mathml", (inline_mathml, None), (block_mathml, None))  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", from_markdown, priority=400)  # type: ignore[attr-defined]
