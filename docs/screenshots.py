"""Take the README's pictures of a report: on a screen, and on a phone in dark colours. Needs chromium.

jedax run maze-b --method jedi-uniform --evaluations 200000 --out r && jedax report r && python docs/screenshots.py r
"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

LOOP = 10
here, page_file = Path(__file__).parent, Path(sys.argv[1]).resolve() / "report.html"

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    for name, width, height, scheme in (("report", 1400, 1880, "light"), ("report-phone", 390, 1420, "dark")):
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.goto(page_file.as_uri())
        page.wait_for_selector(".main-svg", state="attached")
        page.evaluate(f"jedax.explorer.go({LOOP})")
        page.screenshot(path=here / "images" / f"{name}.png")
        page.close()
    browser.close()
