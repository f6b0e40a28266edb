"""Compare three methods on a problem, with five seeds each.

python examples/compare.py
"""

from pathlib import Path

import jedax

METHODS = ("jedi-x", "map-elites", "es")


def main(evaluations=20_000, out="runs/example-compare"):
    """Run each method with all seeds side by side, and write tables and figures to `out`/compare."""
    for method in METHODS:
        jedax.run(method, "arm", evaluations=evaluations, replicas=5, out=f"{out}/{method}", overwrite=True)
    (table,) = jedax.compare(out, formats=("png",)).tables
    for entry in table.entries:
        low, high = entry.interval
        print(f"{entry.label:<12} median {entry.median:.2g}, 95 % between {low:.2g} and {high:.2g}")
    print(f"P-values, effect sizes and more: {Path(out) / 'compare' / 'table.md'}")
    return table


if __name__ == "__main__":
    main()
