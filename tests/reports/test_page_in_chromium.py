"""The page in a real browser: it loads in silence, every control works, and no text of a data set is ever run."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from gcond.reports.display_names import clean
from gcond.reports.page import interactive_view, read_runs, render_page
from reports.sample_runs import HOSTILE, comparison, search, small, write_result, write_run

if os.environ.get("CI") != "true":
    pytest.importorskip("selenium", reason="selenium is not installed")
from selenium.webdriver import ActionChains, Chrome, ChromeOptions, Keys
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    if CHROMIUM is None or DRIVER is None:
        reason = "no Chromium with its driver here: apt-get install chromium chromium-driver"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    options = ChromeOptions()
    options.binary_location = CHROMIUM
    # Root, as in containers, gets no sandbox; /dev/shm is small there.
    for switch in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--window-size=1280,900",
    ):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """With figures, where matplotlib is there: their pictures must get past the policy too."""
    folder = write_run(tmp_path_factory.mktemp("page") / "run", comparison(("red", "green", "blue")))
    write_result(folder, search())
    path = folder / "page.html"
    path.write_text(render_page(read_runs([folder])), encoding="utf-8")
    return path


def visit(browser: Chrome, path: Path) -> None:
    browser.get_log("browser")
    browser.get(path.as_uri())


def one(browser: Chrome, selector: str):
    return browser.find_element(By.CSS_SELECTOR, selector)


def counts(browser: Chrome) -> dict[str, str]:
    return {
        each.get_attribute("data-count"): each.text for each in browser.find_elements(By.CSS_SELECTOR, "[data-count]")
    }


def told(browser: Chrome) -> str:
    return one(browser, "[data-node]").text


def set_slider(browser: Chrome, place: int) -> None:
    browser.execute_script(
        "const s = document.querySelector('[data-slider]'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input', { bubbles: true }));",
        place,
    )


def open_table(browser: Chrome) -> list[str]:
    """The rows of the table; it is filled a moment after it is opened."""
    one(browser, "[data-table] summary").click()
    find = "[data-table] tbody tr"
    WebDriverWait(browser, 10).until(lambda page: page.find_elements(By.CSS_SELECTOR, find))
    return [row.text for row in browser.find_elements(By.CSS_SELECTOR, find)]


def painted(browser: Chrome) -> str:
    """What the canvas shows, after the next frame."""
    return browser.execute_async_script(
        "const done = arguments[0];"
        "requestAnimationFrame(() => requestAnimationFrame(() => done(document.querySelector('canvas').toDataURL())));"
    )


def test_it_loads_in_silence_and_whole(browser, page):
    visit(browser, page)
    assert browser.get_log("browser") == []
    assert browser.title == "toy in 8 nodes"
    broken = "return [...document.images].filter((i) => !i.complete || i.naturalWidth === 0).length"
    assert browser.execute_script(broken) == 0
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)")
    assert [name for name in fetched if not name.startswith("data:")] == []


def test_the_policy_stops_what_is_not_ours(browser, page):
    visit(browser, page)
    browser.execute_script(
        "const s = document.createElement('img'); s.setAttribute('onerror', 'window.ran = 1'); s.src = 'x';"
        "document.body.append(s); const t = document.createElement('script'); t.textContent = 'window.ran = 2';"
        "document.body.append(t);"
    )
    assert browser.execute_script("return window.ran") is None
    assert any("Content Security Policy" in entry["message"] for entry in browser.get_log("browser"))


def test_the_slider_hides_edges_and_counts(browser, page):
    visit(browser, page)
    data = json.loads(one(browser, '[data-viewer] script[type="application/json"]').get_attribute("textContent"))
    stops = data[0]["stops"]
    assert counts(browser) == {"edges": "7", "density": "21.9 %", "isolated": "1", "same": "14.3 %"}
    before = painted(browser)
    place = next(k for k, stop in enumerate(stops) if stop[2] == 3)
    set_slider(browser, place)
    assert counts(browser)["edges"] == "3"
    assert counts(browser)["isolated"] == str(stops[place][4])
    assert one(browser, "[data-delta]").text == str(stops[place][0])
    assert "3 edges" in one(browser, "[data-slider]").get_attribute("aria-valuetext")
    assert painted(browser) != before
    set_slider(browser, len(stops) - 1)
    assert counts(browser) == {"edges": "0", "density": "0.0 %", "isolated": "8", "same": "–"}
    set_slider(browser, 0)
    assert painted(browser) == before


def test_the_slider_answers_keys(browser, page):
    visit(browser, page)
    slider = one(browser, "[data-slider]")
    slider.send_keys(Keys.END)
    assert counts(browser)["edges"] == "0"
    slider.send_keys(Keys.HOME)
    assert counts(browser)["edges"] == "7"


def test_the_keyboard_walks_the_graph(browser, page):
    visit(browser, page)
    canvas = one(browser, "canvas")
    canvas.send_keys(Keys.HOME)
    # The ring's heaviest edges are 6-0 (7/8) and 5-6 (6/8): node 6 has the most weight.
    assert told(browser).splitlines()[:2] == ["Node 6", "red, 2 edges"]
    assert "0, red\n0.88" in told(browser)
    assert told(browser).index("0, red") < told(browser).index("5, blue")
    canvas.send_keys(Keys.ENTER)
    assert told(browser).startswith("Node 0")
    visited = {canvas.get_attribute("data-chosen")}
    for key in (Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.ARROW_RIGHT, Keys.ARROW_DOWN) * 4:
        canvas.send_keys(key)
        visited.add(canvas.get_attribute("data-chosen"))
    assert len(visited) >= 4
    canvas.send_keys("+")
    assert float(canvas.get_attribute("data-scale")) > 1
    canvas.send_keys(Keys.ESCAPE)
    assert told(browser).startswith("Point at a node")
    assert one(browser, "[data-node]").get_attribute("aria-live") == "polite"


def test_the_mouse_points_drags_and_zooms(browser, page):
    visit(browser, page)
    canvas = one(browser, "canvas")
    canvas.send_keys(Keys.HOME)
    x, y = map(int, canvas.get_attribute("data-at").split(","))
    canvas.send_keys(Keys.ESCAPE)
    from_middle = (x - canvas.size["width"] // 2, y - canvas.size["height"] // 2)
    ActionChains(browser).move_to_element_with_offset(canvas, *from_middle).perform()
    assert told(browser).startswith("Node 6")
    step = 30 if from_middle[1] < 0 else -30  # towards the middle
    ActionChains(browser).click_and_hold().move_by_offset(0, step).move_by_offset(0, step).release().perform()
    moved = [int(part) for part in canvas.get_attribute("data-at").split(",")]
    assert abs(moved[0] - x) <= 2
    assert abs(moved[1] - (y + 2 * step)) <= 2
    before = painted(browser)
    for name in ("in", "out", "fit"):
        one(browser, f'[data-zoom="{name}"]').click()
        if name == "in":
            assert painted(browser) != before
    browser.execute_script("document.activeElement.blur()")
    scale = canvas.get_attribute("data-scale")
    wheel = "arguments[0].dispatchEvent(new WheelEvent('wheel', { deltaY: -300, cancelable: true }))"
    browser.execute_script(wheel, canvas)
    assert canvas.get_attribute("data-scale") == scale  # the page scrolls past a picture that is not selected
    browser.execute_script("arguments[0].focus()", canvas)
    browser.execute_script(wheel, canvas)
    assert float(canvas.get_attribute("data-scale")) > float(scale)


def test_two_fingers_zoom(browser, page):
    visit(browser, page)
    canvas = one(browser, "canvas")
    browser.execute_script("arguments[0].scrollIntoView({ block: 'center' })", canvas)
    box = browser.execute_script(
        "const b = arguments[0].getBoundingClientRect(); return [b.left, b.top, b.width, b.height]", canvas
    )
    x, y = box[0] + box[2] / 2, box[1] + box[3] / 2

    def touch(kind: str, spread: float) -> None:
        points = [] if kind == "touchEnd" else [{"x": x - spread, "y": y, "id": 0}, {"x": x + spread, "y": y, "id": 1}]
        browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 40)
    touch("touchMove", 60)
    touch("touchMove", 80)
    touch("touchEnd", 0)
    assert float(canvas.get_attribute("data-scale")) == pytest.approx(2, rel=0.1)


def test_another_graph_is_chosen(browser, page):
    visit(browser, page)
    which = Select(one(browser, "[data-which]"))
    assert which.first_selected_option.text == "gcond, 8 nodes, seed 0"  # the headline's
    which.select_by_visible_text("random, 8 nodes, seed 0")
    assert counts(browser)["edges"] == "0"
    assert not one(browser, "[data-slider]").is_enabled()
    assert "no edges" in one(browser, "[data-remark]").text
    which.select_by_visible_text("gcond, 30 nodes, seed 0")
    assert counts(browser)["edges"] == "29"
    assert one(browser, "canvas").get_attribute("aria-label") == "gcond, 30 nodes, seed 0: 30 nodes, 29 edges"


def test_the_table_says_the_same_as_the_picture(browser, page):
    visit(browser, page)
    rows = open_table(browser)
    assert len(rows) == 8
    assert rows[6] == "6 red 2 0 (0.88), 5 (0.75)"
    assert rows[7] == "7 green 0 –"
    set_slider(browser, int(one(browser, "[data-slider]").get_attribute("max")))
    assert one(browser, "[data-table] tbody tr:nth-child(7)").text == "6 red 0 –"


def test_of_many_edges_a_node_counts_those_that_are_drawn(browser, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gcond.reports.figures", None)
    monkeypatch.setattr(interactive_view, "MOST_PAIRS", 1)
    ends = torch.tensor([[0, 1, 2], [1, 0, 0]])
    small(edge_index=ends, edge_weight=torch.tensor([0.5, 0.2, 0.1])).save(tmp_path / "directed.safetensors")
    path = tmp_path / "cut.html"
    path.write_text(render_page(read_runs([tmp_path / "directed.safetensors"])), encoding="utf-8")
    visit(browser, path)
    assert counts(browser)["edges"] == "3"
    assert "1 heaviest of 2 joined pairs" in one(browser, "[data-remark]").text
    assert open_table(browser)[0] == "0 class 0 1 1 (0.50)"
    assert one(browser, "[data-edges]").text == "neighbours drawn"


def test_a_class_is_picked_out(browser, page):
    visit(browser, page)
    before = painted(browser)
    button = browser.find_elements(By.CSS_SELECTOR, "[data-legend] button")[1]
    assert button.text.split() == ["green", "3"]
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert painted(browser) != before
    button.click()
    assert painted(browser) == before


def test_every_control_has_a_name_and_every_table_its_headings(browser, page):
    visit(browser, page)
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = {"button", "slider", "combobox", "link", "image", "img", "application", "region"}
    controls = [node for node in tree if node.get("role", {}).get("value") in roles and not node.get("ignored")]
    assert {"button", "slider", "combobox", "application"} <= {node["role"]["value"] for node in controls}
    assert [node for node in controls if not node.get("name", {}).get("value")] == []
    levels = browser.execute_script(
        "return [...document.querySelectorAll('h1,h2,h3,h4')].map((h) => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    twice = "const ids = [...document.querySelectorAll('[id]')].map((e) => e.id); return ids.length - new Set(ids).size"
    assert browser.execute_script(twice) == 0


@pytest.mark.parametrize(("width", "height"), [(390, 844), (320, 568), (1280, 800)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_at_any_width(width, height, scheme, browser, page):
    size = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    try:
        visit(browser, page)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_it_prints_on_white_with_its_settings_open(browser, page):
    feature = {"name": "prefers-color-scheme", "value": "dark"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": [feature]})
    try:
        visit(browser, page)
        assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not one(browser, "[data-slider]").is_displayed()
        browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        assert browser.execute_script("return document.querySelector('details:not([data-table])').open")
        browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
        assert not browser.execute_script("return document.querySelector('details:not([data-table])').open")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_shown_and_never_run(name, browser, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gcond.reports.figures", None)
    pages = {}
    for kind, text in (("usual", "usual"), ("hostile", name)):
        found = comparison((text, "b", "c"), source=text, method=text, advice=(text,))
        run = write_run(tmp_path / kind, found, name=text, method=text)
        pages[kind] = tmp_path / f"{kind}.html"
        pages[kind].write_text(render_page(read_runs([run]), title=text), encoding="utf-8")
    elements = {}
    for kind, path in pages.items():
        visit(browser, path)
        one(browser, "canvas").send_keys(Keys.HOME)
        open_table(browser)
        elements[kind] = browser.execute_script(
            "return [...document.querySelectorAll('*')].map((e) => e.tagName).join()"
        )
        assert browser.get_log("browser") == []  # an alert would also fail the next call
    assert elements["hostile"] == elements["usual"]
    name = clean(name)
    assert browser.execute_script("return document.title") == name
    read = "return document.querySelector(arguments[0]).textContent"
    for place in ("h1", ".advice", "[data-legend] button bdi", "[data-node] p:nth-child(2)"):
        assert name in browser.execute_script(read, place)
    assert name in browser.execute_script("return document.querySelector('tr.best th bdi').textContent")


def test_a_thousand_nodes_are_drawn_at_once(browser, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gcond.reports.figures", None)
    small(nodes=1000, classes=56).save(tmp_path / "large.safetensors")
    path = tmp_path / "large.html"
    path.write_text(render_page(read_runs([tmp_path / "large.safetensors"])), encoding="utf-8")
    visit(browser, path)
    assert counts(browser)["edges"] == "999"
    one(browser, "canvas").send_keys(Keys.HOME)
    assert told(browser).startswith("Node 998")
    assert len(browser.find_elements(By.CSS_SELECTOR, "[data-legend] button")) == 56
    looks = "return [...document.querySelectorAll('[data-legend] svg')].map((svg) => svg.outerHTML)"
    assert len(set(browser.execute_script(looks))) == 56
    assert browser.get_log("browser") == []
    assert path.stat().st_size < 200_000
