"""Draw the README's picture from a run: path of the best robot, evaluations of each cell, GP mean.

jedax run maze-a --method jedi-uniform && python docs/pictures.py runs/maze-a-jedi-uniform-seed0
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import jedax
from jedax.report import plots

run = jedax.load(sys.argv[1])
replica = run.best_replica
figure, axes = plt.subplots(1, 3, figsize=(14, 4.3), layout="constrained")
plots.best(axes[0], run)
plots.cell_values(axes[1], run, np.asarray(run.repertoire.counts[replica]), "evaluations", log=True, cmap="magma")
plots.cell_values(axes[2], run, np.asarray(run.gp_mean[replica]), "expected fitness")
axes[0].set_title(f"best robot: {-run.best().fitness:.0f} steps to the goal", fontsize=11)
axes[1].set_title("how often each behaviour was tried", fontsize=11)
axes[2].set_title("what the Gaussian process expects of it", fontsize=11)
figure.savefig(Path(__file__).parent / "images" / f"{run.config.task}.png", dpi=110)
