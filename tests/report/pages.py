"""A browser for the tests of pages, and a tiny run to look at."""

import shutil
from contextlib import contextmanager

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser, address, **options):
    """Open a page; it must neither complain nor ask for anything but itself and what lies beside it."""
    page = browser.new_page(**{"viewport": {"width": 1400, "height": 900}, **options})
    page.set_default_timeout(120_000)  # other processes may have the machine
    trouble, asked = [], []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(str(address))
    page.wait_for_selector(".js-plotly-plot .main-svg", state="attached")
    yield page
    assert trouble == []
    base = str(address).rsplit("/", 1)[0]
    assert [url for url in asked if not url.startswith((base, "blob:", "data:"))] == []
    page.close()


def keep_settings(path):
    """Remove all files of a run but its settings."""
    for file in path.iterdir():
        if file.name != "config.yaml":
            shutil.rmtree(file) if file.is_dir() else file.unlink()


def saved(page, button):
    """Return the lines of the CSV file that a button gives."""
    with page.expect_download() as download:
        page.click(button)
    return download.value.path().read_text().splitlines()
