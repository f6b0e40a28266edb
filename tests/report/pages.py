"""A browser for the tests of pages, and a tiny run to look at."""

import shutil
import time
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


def wait_until(page, condition, seconds=60):
    """Wait until a condition of a page holds, which forbids what Playwright does for that."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(50)


def saved(page, button):
    """Return the lines of the CSV file that a button gives."""
    with page.expect_download() as download:
        page.click(button)
    return download.value.path().read_text().splitlines()
