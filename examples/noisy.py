"""Noise: the best of many noisy evaluations is also the luckiest. How much of it was luck?

python examples/noisy.py
"""

import jedax

MAZE = jedax.tasks.make("maze-a", wheel_noise=0.002)


def main(evaluations=100_000, out="runs/example-noisy"):
    """Spend the same budget on one and on four samples of each solution, and evaluate both outcomes again."""
    for samples in (1, 4):
        folder = f"{out}/{samples}"
        jedax.run("jedi-x", MAZE, evaluations=evaluations, samples_per_evaluation=samples, out=folder, overwrite=True)
        (solutions,) = jedax.reevaluate(folder, samples=32).replicas
        reported, corrected = solutions.reported[solutions.best], solutions.fitness[solutions.best]
        print(f"{samples} at a time: best fitness {reported:.0f}, evaluated again {corrected:.0f};", end=" ")
        print(f"{solutions.num_kept} of {solutions.num_elites} elites behave as reported")


if __name__ == "__main__":
    main()
