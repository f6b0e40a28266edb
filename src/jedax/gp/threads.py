"""Threads of the linear algebra library (BLAS) that JAX calls on the CPU for a Gaussian process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import threadpoolctl


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit the BLAS to one thread.

    Its threads spin while they wait for each other: alone on two cores they save a tenth of the time of a fit, but
    beside any other process the fit takes ten to thirty times as long (see `benchmarks/README.md`).
    """
    import scipy.linalg  # noqa: F401, the limit holds for libraries that are loaded

    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
        yield
