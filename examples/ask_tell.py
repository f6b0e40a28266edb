"""Ask and tell with a simulator in NumPy: gaits of a creature with two legs that slip.

python examples/ask_tell.py
"""

import numpy as np

import jedax


def simulate(genotypes, steps=100):
    """Return fitness and descriptors of all creatures.

    A genotype has amplitude, frequency, phase and duration of ground contact for each leg. Fitness is the distance
    walked minus the effort; the descriptor is the share of time that each foot is on the ground.
    """
    amplitude, frequency, phase, duty = np.tanh(genotypes).reshape(-1, 4, 2).transpose(1, 0, 2)
    time = np.linspace(0, 2 * np.pi, steps)[:, None, None]
    angle = (1 + 3 * np.abs(frequency)) * time + np.pi * phase
    down = np.sin(angle) < duty
    push = -amplitude * np.cos(angle) * down  # a foot in the air moves nothing
    both = down.all(axis=2, keepdims=True)
    way = np.where(both, push.min(axis=2, keepdims=True), push).sum(axis=(0, 2))  # both down: the slower foot limits
    effort = 0.1 * np.square(amplitude * frequency).sum(axis=1) * steps
    return way - effort, down.mean(axis=0)


def main(evaluations=50_000, out="runs/example-gaits.safetensors"):
    """Search, save and load the search halfway, and continue."""
    optimizer = jedax.Optimizer(8, descriptor_bounds=([0, 0], [1, 1]), evaluations=evaluations, seed=1)
    while optimizer.evaluations < evaluations / 2:
        genotypes = optimizer.ask()
        optimizer.tell(genotypes, *simulate(genotypes))
    optimizer.save(out)
    optimizer = jedax.Optimizer.load(out)
    while not optimizer.done:
        genotypes = optimizer.ask()
        optimizer.tell(genotypes, *simulate(genotypes))
    left, right = optimizer.best.descriptor
    print(
        f"The best gait scores {optimizer.best.fitness:.2f}; its feet are down {left:.0%} and {right:.0%} of the time."
    )
    return optimizer


if __name__ == "__main__":
    main()
