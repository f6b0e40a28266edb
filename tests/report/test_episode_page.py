"""The page of a run whose solutions are episodes, in a real browser."""

import shlex
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest
from tests.conftest import draw_nothing, wait_until
from tests.report.pages import opened, saved

import jedax
from jedax import cli
from jedax.errors import JedaxError
from jedax.report import episodes, viewer
from jedax.report.pages import run_page, write_report
from jedax.tasks import make


def searched(task, out, evaluations):
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        return jedax.run("map-elites", task, evaluations=evaluations, offspring=evaluations // 3, cells=16, out=out)


@pytest.fixture(scope="module")
def hopper(tmp_path_factory):
    pytest.importorskip("mujoco")
    pytest.importorskip("gymnasium")
    task = make("gym:Hopper-v5", steps=50, hidden=(3,), chunk=4, descriptor_lows=(0,), descriptor_highs=(1,))
    return searched(task, tmp_path_factory.mktemp("episodes") / "run", 24)


@pytest.fixture(scope="module")
def ant(tmp_path_factory):
    """A scripted ant that always goes the same way."""
    pytest.importorskip("brax")
    from tests.tasks.control.scripted import Script, ant

    places = np.array([[1, 0], [4, 1], [8, 2], [9, 3]], float)
    positions = np.concatenate([places, np.full((4, 1), 0.5)], axis=1)[:, None]
    task = ant(Script(positions, [-9, -8, -7, -6], [0, 0, 0, 0]))
    return searched(task, tmp_path_factory.mktemp("ways") / "run", 6), task


def choose(page, cell):
    page.evaluate("document.getElementById('map').scrollIntoView({ block: 'center', behavior: 'instant' })")
    page.mouse.click(*page.evaluate(f"jedax.explorer.screen({cell})"))
    page.mouse.move(2, 2)


def filled(run):
    return np.flatnonzero(np.isfinite(run.repertoire.fitness[0])).tolist()


def test_a_cell_shows_its_return_and_its_foot(browser, hopper, tmp_path):
    with opened(browser, write_report(hopper.path, out=tmp_path / "report.html").as_uri()) as page:
        assert page.is_hidden("#scene-frame")
        assert len(filled(hopper)) > 2
        for cell in filled(hopper):
            choose(page, cell)
            fitness = float(hopper.repertoire.fitness[0][cell])
            share = float(hopper.repertoire.descriptors[0][cell][0])
            episode = page.evaluate("""() => {
                const { length, steps, returns, contacts } = jedax.explorer.episode(jedax.explorer.cell);
                return { length, steps, returns: [...returns], foot: [...contacts[0]] };
            }""")
            assert episode["returns"][-1] == pytest.approx(fitness, abs=0.01)
            assert np.mean(episode["foot"]) == pytest.approx(share, abs=1e-6)
            text = page.inner_text("#episode-note")
            said = f"after {episode['length']} steps, foot_geom on the floor in {round(100 * share)} % of them."
            assert text.endswith(said)
            assert text in page.get_attribute("#episode", "aria-label")
        # Feet are painted where they are on the floor.
        inks = page.evaluate("""() => {
            const canvas = document.getElementById("episode"), scale = devicePixelRatio;
            const { contacts, length } = jedax.explorer.episode(jedax.explorer.cell);
            const row = canvas.getContext("2d").getImageData(0, 208 * scale, canvas.width, 1).data;
            const at = (step) => Math.floor(52 * scale + ((step + 0.5) / length) * (canvas.width - 62 * scale));
            return [...contacts[0]].map((down, step) => [down, row[4 * at(step)]]);
        }""")
        assert {down for down, _ in inks} == {0, 1}
        for down, red in inks:
            assert (red < 120) == bool(down)
        rows = saved(page, "#path-csv")
        assert rows[0] == "step,return,foot_geom"
        assert len(rows) == episode["length"] + 1
        assert [int(row.split(",")[2]) for row in rows[1:]] == episode["foot"]
        assert float(rows[-1].split(",")[1]) == pytest.approx(fitness, abs=0.01)


def test_cells_without_an_episode_say_so(browser, hopper, tmp_path):
    """There is time for one batch of four: the best, and the best left of each region."""
    page_file = write_report(hopper.path, out=tmp_path / "report.html", trace_seconds=1e-9)
    stored = hopper.repertoire
    order = episodes.spread(stored.descriptors[0].astype(float), stored.fitness[0].astype(float), ((0.0,), (1.0,)))
    with opened(browser, page_file.as_uri(), viewport={"width": 390, "height": 800}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.is_visible("#episode")
        choose(page, int(order[4]))
        assert page.is_hidden("#episode")
        assert page.inner_text("#episode-note").endswith("The command below shows it.")
        assert page.is_hidden("#path-csv")
        command = shlex.split(page.inner_text("#replay-command"))
        assert command[:4] == ["jedax", "replay", str(hopper.path), "--cell"]
        centroid = float(hopper.cells.centroids[int(order[4])][0])
        assert float(command[4]) == pytest.approx(centroid, rel=1e-4)
        choose(page, int(order[3]))
        assert page.is_visible("#episode")
        empty = int(np.flatnonzero(~np.isfinite(stored.fitness[0]))[0])
        page.evaluate(f"jedax.explorer.cell = {empty}; jedax.explorer.draw()")
        assert page.inner_text("#episode-note") == "This cell is empty: no solution behaved so."


def test_the_way_of_an_ant_among_its_walls(browser, ant, tmp_path):
    run, task = ant
    with opened(browser, write_report(run.path, out=tmp_path / "r.html", task=task).as_uri()) as page:
        points = page.evaluate("jedax.explorer.trace(jedax.explorer.cell).points")
        np.testing.assert_allclose(points, [[0, 0], [1, 0], [4, 1], [8, 2], [9, 3]], atol=1e-3)
        assert page.inner_text("#episode-note") == "Return -30 after 4 steps."
        assert page.get_attribute("#scene", "aria-label") == "The way of the robot, fitness -30."
        assert page.is_hidden("#replay-line")  # the directory cannot name this task
        rows = saved(page, "#path-csv")
        assert rows[0] == "step,return,x,y"
        np.testing.assert_allclose([float(v) for v in rows[4].split(",")], [4, -30, 9, 3], atol=1e-3)
        colours = page.evaluate("""() => {
            const { width, height } = jedax.explorer.scene, scale = devicePixelRatio;
            const { data } = jedax.explorer.scene.getContext("2d").getImageData(0, 0, width, height);
            return [[6, 1.5], [20, 7.5], [20, 22]].map((place) => {
                const [x, y] = jedax.explorer.sceneView.to(place).map((pixel) => Math.round(pixel * scale));
                return [...data.slice(4 * (y * width + x), 4 * (y * width + x) + 4)];
            });
        }""")
        np.testing.assert_allclose(colours[0][:3], [0, 0x72, 0xB2], atol=60)  # the way
        np.testing.assert_allclose(colours[1], [0x20, 0x24, 0x2A, 255], atol=1)  # in the wall x = 20
        assert colours[2][3] == 0  # above it


def test_a_page_that_follows_a_run_lets_solutions_act_when_asked(browser, hopper):
    server = viewer.server(hopper.path)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://{viewer.HOST}:{server.server_address[1]}/"
    cell = filled(hopper)[1]
    with opened(browser, address) as page:
        page.evaluate(f"jedax.explorer.cell = {cell}; jedax.explorer.draw()")
        assert page.is_hidden("#episode")
        assert page.inner_text("#episode-note").endswith("solutions act when they are asked to.")
        page.click("#act")
        page.wait_for_selector("#episode", state="visible")
        final = page.evaluate("jedax.explorer.episode(jedax.explorer.cell).returns.at(-1)")
        assert final == pytest.approx(hopper.repertoire.fitness[0][cell], abs=0.01)
        assert page.is_hidden("#act")
        page.evaluate("jedax.explorer.update(jedax.data)")
        assert page.is_visible("#episode")
    for query, status in [("replica=0&cell=x", "404"), ("replica=0&cell=999", "503"), ("", "503")]:
        with pytest.raises(urllib.error.HTTPError, match=status):
            urllib.request.urlopen(f"{address}episode.json?{query}", timeout=60)
    server.shutdown()
    server.server_close()


def test_what_keeps_a_solution_from_acting_is_said_of_that_solution(browser, hopper, monkeypatch):
    going = threading.Event()

    def act(self, replica, cell):
        going.wait(60)
        raise JedaxError(f"trouble with {cell}")

    monkeypatch.setattr(viewer.View, "episode", act)
    server = viewer.server(hopper.path)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    one, other = filled(hopper)[1:3]
    page = browser.new_page()
    page.goto(f"http://{viewer.HOST}:{server.server_address[1]}/")
    page.evaluate(f"jedax.explorer.cell = {one}; jedax.explorer.draw()")
    page.click("#act")
    page.evaluate("jedax.explorer.update(jedax.data)")
    assert page.inner_text("#episode-note").startswith("It acts")
    assert page.is_hidden("#act")
    page.evaluate(f"jedax.explorer.cell = {other}; jedax.explorer.draw()")
    assert page.is_visible("#act")
    going.set()
    wait_until(lambda: page.evaluate("jedax.explorer.troubles.size === 1"))
    assert page.inner_text("#episode-note").endswith("solutions act when they are asked to.")
    page.evaluate(f"jedax.explorer.cell = {one}; jedax.explorer.draw()")
    assert page.inner_text("#episode-note") == f"trouble with {one}"
    assert page.is_visible("#act")  # to try again
    page.close()
    server.shutdown()
    server.server_close()


def test_what_is_missing_is_said(browser, hopper, tmp_path, monkeypatch):
    def missing(*arguments, **settings):
        raise JedaxError(
            "task x: expected the package brax.envs, got none; install it with: pip install 'jedax[brax]'."
        )

    monkeypatch.setattr(episodes, "rollouts", missing)
    with opened(browser, write_report(hopper.path, out=tmp_path / "report.html").as_uri()) as page:
        assert page.is_hidden("#episode")
        assert "cannot act again here: task x: expected the package brax.envs" in page.inner_text("#episode-note")


def test_a_task_that_cannot_be_made_here(hopper, monkeypatch):
    from jedax.tasks.gym import task as gym

    gym._facts.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "gymnasium", None)
    text = run_page(hopper.path)
    assert "Solutions are not drawn: gym:Hopper-v5: expected the package gymnasium" in text
    assert "&#39;jedax[gym]&#39;" in text


def test_the_command_films_the_cell(maze_run, tmp_path, capsys, browser):
    run = jedax.load(maze_run)
    fitness = run.repertoire.fitness[0]
    cell = int(np.flatnonzero(np.isfinite(fitness))[3])
    with opened(browser, write_report(maze_run, out=tmp_path / "report.html").as_uri()) as page:
        page.select_option("#replica", "0")
        page.evaluate(f"jedax.explorer.cell = {cell}; jedax.explorer.draw()")
        words = shlex.split(page.inner_text("#replay-command"))
        assert words[:2] == ["jedax", "replay"]
        page.select_option("#replica", str(run.best_replica))
        page.evaluate("jedax.explorer.cell = jedax.explorer.now.best.cell; jedax.explorer.draw()")
        assert page.inner_text("#replay-command") == f"jedax replay {shlex.quote(str(maze_run))}"
    cli.main([*words[1:], "--out", str(tmp_path)])
    assert f"fitness {fitness[cell]:.5g}, recorded" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["-1.0", "nan"])
def test_a_time_that_is_none(text, capsys, maze_run):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["report", str(maze_run), "--trace-seconds", text])
    assert f"trace-seconds: expected a number of at least 0, got {text}" in capsys.readouterr().err
