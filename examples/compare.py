"""Which method suits a problem? Three of them with five seeds each, and what can be said of the difference.

python examples/compare.py
"""

from pathlib import Path

import jedax

METHODS = ("jedi-x", "map-elites", "es")


def main(evaluations=20_000, out="runs/example-compare"):
    """Run each method, seeds side by side, and compare; tables and figures are in `out`/compare."""
    for method in METHODS:
        jedax.run(method, "arm", evaluations=evaluations, replicas=5, out=f"{out}/{method}", overwrite=True)
    (table,) = jedax.compare(out, formats=("png",)).tables
    for entry in table.entries:
        low, high = entry.interval
        print(f"{entry.label:<12} median {entry.median:.2g}, 95 % between {low:.2g} and {high:.2g}")
    print(f"P-values, effect sizes and all else: {Path(out) / 'compare' / 'table.md'}")
    return table


if __name__ == "__main__":
    main()
