"""A gymnasium environment with a custom descriptor: the range of the cart. Needs `pip install '.[gym]'`.

python examples/cartpole.py
"""

import jedax


def where_it_was(episode):
    """Return the leftmost and the rightmost position of the cart."""
    positions = [observation[0] for observation in episode.observations]
    return [min(positions), max(positions)]


def main(evaluations=2_048, out="runs/example-cartpole"):
    """Search for policies with one hidden layer; two processes step the environments."""
    task = jedax.tasks.make(
        "gym:CartPole-v1",
        descriptor="cartpole:where_it_was",
        descriptor_lows=(-2.4, -2.4),
        descriptor_highs=(2.4, 2.4),
        hidden=(8,),
    )
    run = jedax.run("jedi-x", task, evaluations=evaluations, workers=2, out=out, overwrite=True)
    low, high = run.best().descriptor
    print(f"The best policy balances for {run.best().fitness:.0f} steps, the cart between {low:.1f} and {high:.1f}.")
    return run


if __name__ == "__main__":
    main()
