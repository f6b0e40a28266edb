"""A maze that deceives: whoever walks towards the target gets stuck at a wall. Prints how the best robot fares.

python examples/maze.py
"""

import jedax


def main(evaluations=200_000, out="runs/example-maze"):
    """Search with three seeds side by side; pictures of the best are in `out`."""
    run = jedax.run("jedi-x", "maze-a", evaluations=evaluations, replicas=3, out=out, overwrite=True)
    for seed, fitness in enumerate(run.summary["max_fitness"]):
        outcome = f"arrives after {-fitness:.0f} of 250 steps" if fitness > -250 else "does not arrive"
        print(f"seed {seed}: the best robot {outcome}")
    wheels = run.policy()([0.2, 0.2, 0.2, -1, -1])  # what its 3 lasers and 2 bumpers read in the open
    print(f"In the open the best of all turns its wheels by {wheels}.")
    return run


if __name__ == "__main__":
    main()
