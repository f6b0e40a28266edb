"""Solve a deceptive maze: a robot that drives straight towards the target gets stuck at a wall.

python examples/maze.py
"""

import jedax


def main(evaluations=200_000, out="runs/example-maze"):
    """Search with three seeds side by side; figures are in `out`."""
    run = jedax.run("jedi-x", "maze-a", evaluations=evaluations, replicas=3, out=out, overwrite=True)
    for seed, fitness in enumerate(run.summary["max_fitness"]):
        outcome = f"reaches the target in {-fitness:.0f} of 250 steps" if fitness > -250 else "fails"
        print(f"seed {seed}: the best robot {outcome}")
    wheels = run.policy()([0.2, 0.2, 0.2, -1, -1])  # 3 lasers and 2 bumpers, no wall near
    print(f"Without walls near, the best robot's wheels have the speeds {wheels}.")
    return run


if __name__ == "__main__":
    main()
