"""Define a maze: a U-shaped trap around the start, with the target behind it.

python examples/own_maze.py
"""

import matplotlib.pyplot as plt

import jedax
from jedax.report import plots

TRAP = [(0.3, 0.6, 0.7, 0.6), (0.3, 0.3, 0.3, 0.6), (0.7, 0.3, 0.7, 0.6)]  # x1, y1, x2, y2
MAZE = jedax.tasks.Maze(name="trap", walls=TRAP, start=(0.5, 0.4, 1.57), target=(0.5, 0.85), hidden=(16,))


def main(evaluations=100_000, out="runs/example-own-maze"):
    """Search with JEDi-X and with a single evolution strategy, and draw the best path of each."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
    for ax, method in zip(axes, ("jedi-x", "es"), strict=True):
        run = jedax.run(method, MAZE, evaluations=evaluations, out=f"{out}/{method}", overwrite=True)
        plots.best(ax, run)
        ax.set_title(f"{method}: {run.best().fitness:.0f}")
        print(f"{method}: best fitness {run.best().fitness:.0f}, coverage {run.summary['coverage']:.0%}")
    figure.savefig(f"{out}/paths.png")
    plt.close(figure)
    print(f"Both paths are in {out}/paths.png.")
    return run


if __name__ == "__main__":
    main()
