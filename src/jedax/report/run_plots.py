"""What a search did, drawn from its history: figures as functions of a matplotlib `Axes` and a `Run`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jedax.errors import fail
from jedax.report.numbers import evaluations_text
from jedax.store import history
from jedax.store.files import write_atomic
from jedax.store.history import History, Loop
from jedax.store.run import Run
from jedax.tasks.drawing import legend_below

COLUMN = 3.33
"""Width of a column of the paper, in inches."""

# Colours of Okabe & Ito, safe for colour-blind readers.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#222222")
_DPI = 300


@contextmanager
def paper_style() -> Iterator[None]:
    """Draw as the paper does: figures one column wide, small type, fonts that stay text in a PDF."""
    style: dict[Any, Any] = {
        "figure.figsize": (COLUMN, 2.5), "figure.dpi": 100, "savefig.dpi": _DPI, "font.size": 8, "axes.labelsize": 8,
        "axes.titlesize": 8, "legend.fontsize": 7, "xtick.labelsize": 7, "ytick.labelsize": 7, "lines.linewidth": 1.2,
        "axes.linewidth": 0.6, "axes.spines.top": False, "axes.spines.right": False, "pdf.fonttype": 42,
    }  # fmt: skip
    with matplotlib.rc_context(style):
        yield


def save(figure: Figure, path: str | Path) -> list[Path]:
    """Write a figure as PDF and as PNG of 300 dots per inch, and return the two paths.

    Args:
        figure: The figure.
        path: Path of the files, without an ending.
    """
    paths = []
    for kind in ("pdf", "png"):
        buffer = io.BytesIO()
        metadata = {"CreationDate": None} if kind == "pdf" else None
        figure.savefig(buffer, format=kind, dpi=_DPI, bbox_inches="tight", metadata=metadata)
        paths.append(Path(f"{path}.{kind}"))
        write_atomic(paths[-1], buffer.getvalue())
    return paths


def history_of(run: Run) -> History:
    """Return the history of a run.

    Raises:
        JedaxError: It has none that can be read.
    """
    found = run.history
    if found is None:
        raise fail(
            "run",
            expected=f"one with a directory that holds {history.FILE}",
            received=run.path or "one without a directory",
            remedy="run it with out=..., and without history=False",
        )
    return found


def _loops(run: Run, replica: int | None) -> tuple[tuple[Loop, ...], int]:
    """Return the loops of a run, at least one, and a replica: the given one, else the one with the best solution."""
    found = history_of(run).loops
    if not found:
        received = f"{run.config.method}, which has none"
        raise fail("run", expected="a method with loops", received=received, remedy="draw a run of JEDi")
    return found, run.best_replica if replica is None else replica


def replay(ax: Axes, run: Run, loop: int = -1, replica: int | None = None) -> None:
    """Draw one loop over a map of cells: from where to where each ES went, and its target.

    A ring is where an ES started, a dot where it got to, a cross its target; the first two descriptors are shown.

    Args:
        ax: Where to draw, such as after `jedax.report.plots.layer`.
        run: A run of JEDi.
        loop: Which of the recorded loops, from 0; -1 is the last.
        replica: None: the one that found the best solution.

    Raises:
        JedaxError: No history, no loops, or not so many.
    """
    loops, which = _loops(run, replica)
    if not -len(loops) <= loop < len(loops):
        raise fail("loop", expected=f"one of the {len(loops)} that were kept", received=loop, remedy="change it")
    chosen = loops[loop]
    for es in range(chosen.targets.shape[1]):
        colour = _COLOURS[es % len(_COLOURS)]
        target, start = (_flat(values[which, es]) for values in (chosen.targets, chosen.starts))
        end = start if chosen.ends is None else _flat(chosen.ends[which, es])
        outline: dict[str, Any] = {"markeredgecolor": "white", "zorder": 7, "linestyle": ""}
        ax.plot(*zip(start, end, strict=True), color="white", linewidth=3.2, zorder=5)
        ax.plot(*zip(start, end, strict=True), color=colour, linewidth=1.6, zorder=6)
        ax.plot(*zip(end, target, strict=True), color=colour, linewidth=1.1, linestyle=":", zorder=6)
        names = ("ES target", "ES start", "ES end") if es == 0 else (None,) * 3
        ax.plot(*target, "X", color=colour, markersize=6, label=names[0], **outline)
        ax.plot(*start, "o", markersize=4.5, zorder=7, label=names[1], linestyle="", markerfacecolor="white",
                markeredgecolor=colour, markeredgewidth=1.5)  # fmt: skip
        if chosen.ends is not None:
            ax.plot(*end, "o", color=colour, markersize=5.5, label=names[2], **outline)
    legend_below(ax)
    alpha = chosen.alpha[which]
    weight = f", alpha {alpha:.2f}" if np.isfinite(alpha) else ""
    ax.set_title(f"loop at {evaluations_text(chosen.evaluations)} evaluations{weight}")


def _flat(descriptor: np.ndarray) -> tuple[float, float]:
    return (float(descriptor[0]), float(descriptor[1]) if len(descriptor) > 1 else 0.5)


def distances(ax: Axes, run: Run, replica: int | None = None) -> None:
    """Draw how far from their targets the ES started and ended, loop by loop: means over the pool.

    Raises:
        JedaxError: No history, or no loops.
    """
    loops, which = _loops(run, replica)
    for name, label, style, colour in (
        ("starts", "start of a loop", ":", _COLOURS[1]), ("ends", "its end", "-", _COLOURS[0])
    ):  # fmt: skip
        chosen = [loop for loop in loops if getattr(loop, name) is not None]
        far = [np.linalg.norm(getattr(loop, name)[which] - loop.targets[which], axis=-1) for loop in chosen]
        means = [np.nanmean(values) if np.isfinite(values).any() else np.nan for values in far]
        ax.plot([loop.evaluations for loop in chosen], means, style, color=colour, label=label)
    ax.set_ylabel("mean distance to the targets")
    ax.set_ylim(bottom=0)
    _evaluations_axis(ax)


def gp_parameters(ax: Axes, run: Run, replica: int | None = None) -> None:
    """Draw signal, length scale and noise of the Gaussian process, loop by loop, on a logarithmic axis.

    Raises:
        JedaxError: No history, or a run whose targets no Gaussian process guided.
    """
    loops, which = _loops(run, replica)
    names = [name for name in loops[0].gp if name != "noise_floor"]
    if not names:
        expected = "one whose targets a Gaussian process guided"
        raise fail("run", expected=expected, received=run.config.method, remedy="run JEDi with --targets pareto")
    for name, line, colour in zip(names, ("-", "--", ":"), _COLOURS, strict=False):
        values = [loop.gp[name][which] for loop in loops]
        ax.plot([loop.evaluations for loop in loops], values, line, color=colour, label=name.replace("_", " "))
    ax.set_yscale("log")
    ax.set_ylabel("parameters of the GP")
    _evaluations_axis(ax)


def _evaluations_axis(ax: Axes) -> None:
    ax.set_xlabel("evaluations")
    ax.xaxis.set_major_formatter(lambda x, _: evaluations_text(x))
    ax.locator_params(axis="x", nbins=5)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)


def phase_times(ax: Axes, run: Run) -> None:
    """Draw where the seconds went, one bar, the longest phase first.

    Raises:
        JedaxError: A run that has not ended.
    """
    phases = {name: seconds for name, seconds in run.summary.get("phase_seconds", {}).items() if seconds > 0}
    if not phases:
        raise fail("run", expected="one that has ended", received="no phase_seconds", remedy="finish it")
    left = 0.0
    for number, (name, seconds) in enumerate(sorted(phases.items(), key=lambda item: -item[1])):
        colour = _COLOURS[number % len(_COLOURS)]
        ax.barh(0, seconds, left=left, height=0.5, color=colour, edgecolor="white", label=f"{name} {seconds:.3g} s")
        left += seconds
    ax.set(yticks=[], xlabel="seconds", xlim=(0, left), ylim=(-0.4, 0.4))
    ax.spines["left"].set_visible(False)
    ax.legend(frameon=False, ncol=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
