"""`jedax view` follows a run, through its being killed and resumed."""

import ipaddress
import json
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from tests.conftest import wait_until
from tests.report.pages import keep_settings

import jedax
from jedax.report import viewer
from jedax.store import history
from jedax.store.directory import RunDirectory


@pytest.fixture
def copy(maze_run, tmp_path):
    shutil.copytree(maze_run, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def serving():
    """Start servers that stop with the test."""
    started = []

    def start(directory):
        server = viewer.server(directory)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return f"http://{viewer.HOST}:{server.server_address[1]}"

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("browser", [False, True])
def test_a_browser_is_opened_if_wanted(copy, monkeypatch, browser):
    opened, said = [], []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(viewer._Server, "serve_forever", lambda self: None)
    viewer.serve(copy, browser=browser, say=said.append)
    (sentence,) = said
    address = re.search(r"http://127\.0\.0\.1:\d+/", sentence)[0]
    assert opened == ([address] if browser else [])


def cut(path, generations):
    """Bring a directory to what it was after some generations, killed on the way."""
    at = 8 * (1 + generations)
    RunDirectory(path).cut(at)
    RunDirectory(path).remove_outcome()


def ask(address, **headers):
    request = urllib.request.Request(address, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.status, answer.read()


def test_a_page_follows_a_run_that_grows(browser, serving, copy, maze_run, monkeypatch):
    monkeypatch.setattr(viewer, "_PAUSE", 0.2)
    cut(copy, 16)
    address = serving(copy)
    page = browser.new_page()
    trouble, asked = [], []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.wait_for_selector("#chart-best .main-svg")
    assert "136 of 320 each" in " ".join(page.inner_text(".facts").split())
    assert page.get_attribute("#loop", "max") == "4"
    page.evaluate("window.kept = true; jedax.explorer.go(1)")
    # The run goes on: more rows, more loops, and then its end.
    for name in ("metrics.csv", history.FILE, "repertoire.safetensors", "summary.json", "manifest.json"):
        shutil.copy(maze_run / name, copy / name)
    page.wait_for_selector("#loop[max='8']", timeout=30_000)
    assert "320 of 320 each" in " ".join(page.inner_text(".facts").split())
    assert page.evaluate("window.kept") is True  # it was not loaded anew
    assert page.evaluate("jedax.explorer.loop") == 1
    assert page.evaluate("document.getElementById('chart-best').data[0].x.at(-1)") == 320
    # Killed and resumed: what came after the checkpoint is gone again.
    cut(copy, 24)
    page.wait_for_selector("#loop[max='5']", timeout=30_000)
    assert page.locator("#map").is_visible()
    page.close()
    assert trouble == []
    assert all(url.startswith((address, "data:")) for url in asked)


@pytest.fixture
def started():
    """Start commands, which end with the test."""
    processes = []

    def start(*arguments, code="from jedax.cli import main; main()"):
        command = [sys.executable, "-c", code, *map(str, arguments)]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def wait_for(condition, process=None, seconds=200):
    limit = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.1)


def recorded(path):
    rows = RunDirectory(path).read_metrics() if (path / "metrics.csv").exists() else []
    return int(rows[-1]["evaluations"]) if rows else 0


@pytest.mark.parametrize("view", [pytest.param("here", marks=pytest.mark.slow),
                                  pytest.param("its own process", marks=pytest.mark.nightly)])  # fmt: skip
def test_a_real_run_is_killed_and_resumed(browser, started, serving, tmp_path, monkeypatch, view):
    """The page goes on with it, and is never loaded anew."""
    path = tmp_path / "run"
    small = (
        "--method",
        "jedi",
        "--cells",
        16,
        "--population",
        4,
        "--pool",
        2,
        "--generations",
        5,
        "--hidden",
        2,
        "--gp-max-steps",
        2,
    )
    running = started("run", "maze-a", *small, "--evaluations", 200_000_000, "--report-every", 200,
                      "--checkpoint-seconds", 0.5, "--out", path)  # fmt: skip
    wait_for((path / "checkpoint").is_dir, running)
    if view == "here":
        monkeypatch.setattr(viewer, "_PAUSE", 0.2)
        address = serving(path)
    else:
        line = started("view", path).stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line).group()
    page = browser.new_page()
    trouble = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(address, timeout=200_000)
    page.evaluate("window.kept = true")

    def shown():
        return page.evaluate("jedax.data.evaluations")

    first = shown()
    wait_for(lambda: shown() > first, running)
    running.kill()
    running.wait()
    before = recorded(path)
    wait_for(lambda: shown() == before)
    again = started("run", "--resume", path)
    wait_for(lambda: shown() > before, again)
    assert page.evaluate("window.kept") is True
    assert page.is_visible("#map")
    assert "Following the run" in page.inner_text("#live")
    page.close()
    assert trouble == []


def test_a_run_that_has_saved_nothing_yet(browser, serving, copy, maze_run):
    keep_settings(copy)
    address = serving(copy)
    _, found = ask(f"{address}/data.json?known=")
    before = json.loads(found)
    assert before["data"]["space"] is None
    shutil.copy(maze_run / "repertoire.safetensors", copy)
    deadline = time.monotonic() + 30
    status, found = 204, b""
    while status == 204 and time.monotonic() < deadline:
        status, found = ask(f"{address}/data.json?known={before['stamp']}")
        time.sleep(0.1)
    assert json.loads(found)["data"]["space"] is not None


def test_a_page_that_was_opened_early_shows_what_its_address_names(browser, serving, copy, maze_run, monkeypatch):
    monkeypatch.setattr(viewer, "_PAUSE", 0.2)
    keep_settings(copy)
    page = browser.new_page()
    page.goto(f"{serving(copy)}/#seed=5&layer=counts&cell=7")
    wait_until(lambda: page.evaluate("Boolean(jedax.explorer)"))
    assert page.is_hidden("#map")
    for name in ("metrics.csv", "repertoire.safetensors"):
        shutil.copy(maze_run / name, copy)
    page.wait_for_selector("#map", timeout=60_000)
    assert page.evaluate("[jedax.explorer.replica, jedax.explorer.layer, jedax.explorer.cell]") == [1, "counts", 7]
    page.close()


def test_a_directory_that_vanishes_and_one_that_takes_its_place(browser, serving, copy, tmp_path, plain, monkeypatch):
    monkeypatch.setattr(viewer, "_PAUSE", 0.2)
    page, trouble = browser.new_page(), []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(serving(copy))
    page.wait_for_selector("#chart-best .main-svg")
    shutil.rmtree(copy)
    wait_until(lambda: page.evaluate("document.getElementById('live').textContent.includes('expected a directory')"))
    assert "this page shows what it last knew" in page.inner_text("#live")
    assert page.inner_text("h1") == "maze-a jedi"
    assert page.is_visible("#map")
    with page.expect_navigation(timeout=60_000):
        jedax.run(plain, "arm", evaluations=8 * 4, out=copy, draw=None)
    page.wait_for_selector("#chart-best .main-svg")
    assert page.inner_text("h1") == "arm map-elites"
    assert "task: arm" in page.text_content("pre")
    page.close()
    assert trouble == []


def test_nothing_new_is_nothing(serving, copy):
    address = serving(copy)
    stamp = json.loads(ask(f"{address}/data.json?known=")[1])["stamp"]
    assert ask(f"{address}/data.json?known={stamp}") == (204, b"")


def test_it_answers_this_machine_and_its_own_files_only(serving, copy):
    address = serving(copy)
    for path in ("config.yaml", "../run/config.yaml", "x"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask(f"{address}/{path}")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        ask(address, Host="example.org:80")


def raw(address, request):
    """Send bytes that no client would, and return what came back."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("path", [
    "/../config.yaml", "/../../etc/passwd", "/%2e%2e/config.yaml", "/..%2fconfig.yaml", "//etc/passwd",
    "/etc/passwd", "/./metrics.csv", "/checkpoint/", "/data.json/../config.yaml", "/report.html/../log.txt",
    "file:///etc/passwd", "/..\\config.yaml", "/%00", "http://[", "*",
])  # fmt: skip
def test_paths_lead_nowhere(serving, copy, path):
    address = serving(copy)
    answer = raw(address, f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:1\r\n\r\n".encode())
    assert answer.split(b"\r\n")[0].split()[1] in (b"404", b"400")
    assert b"root:" not in answer
    assert b"method_config" not in answer


def test_no_other_method_than_get(serving, copy):
    address = serving(copy)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    for method in ("POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "MOVE"):
        answer = raw(address, f"{method} / HTTP/1.0\r\nHost: 127.0.0.1:1\r\nContent-Length: 0\r\n\r\n".encode())
        assert answer.split(b"\r\n")[0].split()[1] == b"501", method
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_it_listens_on_loopback_only(copy):
    server = viewer.server(copy)
    try:
        host, port = server.server_address
        assert ipaddress.ip_address(host).is_loopback
        others = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
        for other in others - {host}:
            if not ipaddress.ip_address(other).is_loopback:
                with pytest.raises(OSError, match="refused"):
                    socket.create_connection((other, port), timeout=5)
    finally:
        server.server_close()


def test_a_port_that_is_taken(serving, copy):
    port = int(serving(copy).rpartition(":")[2])
    with pytest.raises(jedax.JedaxError, match=rf"port: expected one that is free, got {port} \(.*\); choose another"):
        viewer.server(copy, port)


def test_no_run(tmp_path):
    with pytest.raises(jedax.JedaxError, match=r"run directory: expected a directory with a config.yaml"):
        viewer.server(tmp_path)


def test_the_commands(copy):
    command = [sys.executable, "-m", "jedax"]
    done = subprocess.run([*command, "report", str(copy)], capture_output=True, text=True, timeout=200)
    assert done.stdout == f"the report is in {copy / 'report.html'}\n"
    wrong = subprocess.run([*command, "report"], capture_output=True, text=True, timeout=100)
    assert (wrong.returncode, wrong.stderr) == (
        2, "jedax: jedax report: expected one directory, got none; name it, as in: jedax report DIR.\n"
    )  # fmt: skip
    wrong = subprocess.run(
        [*command, "view", str(copy), "--port", "99999"], capture_output=True, text=True, timeout=100
    )
    assert (wrong.returncode, wrong.stderr) == (
        2, "jedax: port: expected a number from 0 to 65535, got 99999; change it.\n"
    )  # fmt: skip
    # A shell's background jobs ignore the signal.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import jedax.cli as c; c.main()"
    process = subprocess.Popen([sys.executable, "-c", heeding, "view", str(copy)], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line).group()
        assert b"<title>maze-a, jedi, seed 4</title>" in ask(address)[1]
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "stopped\n"
    finally:
        process.kill()


def test_a_client_that_leaves_before_its_answer(copy, serving, capfd):
    """It resets the connection while a large page is written."""
    address = serving(copy)
    port = int(address.rpartition(":")[2])
    for _ in range(3):
        with socket.create_connection((viewer.HOST, port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(f"GET / HTTP/1.1\r\nHost: {viewer.HOST}:{port}\r\n\r\n".encode())
            client.recv(1)
    assert ask(f"{address}/")[0] == 200
    assert capfd.readouterr().err == ""
