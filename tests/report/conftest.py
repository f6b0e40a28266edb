"""One tiny run of a maze and one browser, for all tests of pages."""

import pytest
from tests.conftest import draw_nothing


@pytest.fixture(scope="session")
def maze_run(tmp_path_factory):
    """A directory, which no test may change."""
    import jedax

    path = tmp_path_factory.mktemp("pages") / "run"
    config = jedax.JediConfig(population=4, pool=2, generations=5, cells=64, targets="pareto", gp_max_steps=2)
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        jedax.run(config, "maze-a", evaluations=8 * 40, seed=4, replicas=2, report_every=8, out=path)
    return path


@pytest.fixture(scope="session")
def browser():
    from tests.report.pages import CHROMIUM, chromium

    if CHROMIUM is None:
        pytest.skip("no chromium here: apt-get install chromium")
    with chromium() as found:
        yield found
