"""A check that all choices of targets share."""

from jedax.errors import fail


def check_num_targets(num_targets: int, num_cells: int) -> None:
    """Raise a `JedaxError` unless `num_targets` is from 1 to `num_cells`."""
    if not 1 <= num_targets <= num_cells:
        raise fail(
            "num_targets",
            expected=f"1 to {num_cells}, the number of cells",
            received=num_targets,
            remedy="use a smaller pool or a finer repertoire",
        )
