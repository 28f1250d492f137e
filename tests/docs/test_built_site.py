"""The site in a browser: no word beyond the screen, nothing fetched, and what axe finds is the generator's own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.report.test_card_in_browser import violations

pytestmark = [pytest.mark.slow, pytest.mark.stress, pytest.mark.e2e]

ROOT = Path(__file__).resolve().parents[2]
#: What the pages of the generator bring whatever stands on them: its switch of colours, names of its lists, frames of its tables.
OF_THE_GENERATOR = {"aria-hidden-focus", "landmark-unique", "scrollable-region-focusable"}
#: Words that end beyond the screen; what scrolls in a frame of its own and what is folded away does not count.
BEYOND = """
() => {
  const page = document.documentElement, found = [];
  if (page.scrollWidth > page.clientWidth + 1) found.push(['the page scrolls sideways', page.scrollWidth]);
  for (const each of document.querySelectorAll('article :is(p, li, h1, h2, h3, code)')) {
    if (each.closest('table, pre')) continue;
    if (each.getBoundingClientRect().right > page.clientWidth + 1) found.push(['beyond', each.textContent.slice(0, 60)]);
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = Path(shutil.which("zensical") or Path(sys.executable).with_name("zensical"))
    if not program.exists():
        pytest.skip("the generator of the site is not installed (make docs)")
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs")
    subprocess.run([program, "build", "-f", "mkdocs.yml"], cwd=folder, check=True, capture_output=True)
    return folder / "site"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1000), ("dark", 360)])
def test_every_page_fits_its_screen_and_fetches_nothing(site: Path, chromium: Any, scheme: str, width: int) -> None:
    page = chromium.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    files = sorted(site.rglob("*.html"))
    found = {}
    for file in files:
        page.goto(file.as_uri())
        found[file.name] = page.evaluate(BEYOND)
    page.close()
    assert len(files) > 50 and not {name: each for name, each in found.items() if each}
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1000), ("dark", 360)])
@pytest.mark.parametrize("name", ["index", "cli", "hospital", "reports", "risk"])
def test_everybody_can_read_it(site: Path, chromium: Any, name: str, scheme: str, width: int) -> None:
    page = chromium.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    page.goto((site / f"{name}.html").as_uri())
    found = violations(page)
    page.close()
    assert set(found) <= OF_THE_GENERATOR, found
