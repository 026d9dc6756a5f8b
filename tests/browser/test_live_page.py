"""The live page in a real browser, with a run that goes on beside it."""

from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="starlette is missing: pip install 'bnpstream[serve]'")


from serving import PATIENCE, fit, serving, text_records, write_lines

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


@pytest.fixture
def served(tmp_path):
    source = write_lines(tmp_path / "feed.jsonl", text_records(0, 150))
    run = fit(source, tmp_path / "run")

    def go_on():
        write_lines(source, text_records(150, 60), "a")
        fit(source, run, resume=True)

    with serving(run) as served:
        served.go_on = go_on
        yield served


@pytest.fixture
def open_page(browser):
    """Return a function that opens a page of a server; whatever it logs fails the test."""
    contexts, complaints = [], []

    def opened(served, path="", **options):
        context = browser.new_context(**({"reduced_motion": "reduce"} | options))
        context.set_default_timeout(1000 * PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((served.address, "data:"))
                else complaints.append(f"request: {request.url}")
            ),
        )
        page.goto(served.address + path, wait_until="domcontentloaded")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def test_the_page_follows_the_run_and_what_is_open_stays_open(served, open_page):
    page = open_page(served)
    rows = page.locator("[data-show=rows]")
    page.locator("[data-show=rows]", has_text="150").wait_for()
    assert page.locator("#state").inner_text() == "read to the end"
    assert page.locator("#topics tbody tr").count() >= 1
    assert page.get_by_role("img", name="River").is_visible()
    opened = page.locator("#clusters tbody tr summary").first
    opened.click()
    number = page.locator("#clusters tbody tr").first.get_attribute("id")
    served.go_on()
    page.locator("[data-show=rows]", has_text="210").wait_for()
    page.locator("#river .axis", has_text="210").wait_for()
    assert rows.inner_text() == "210"
    assert page.locator(f"#clusters [id={number}] details").evaluate("one => one.open")


def test_people_go_from_topics_to_clusters_to_one(served, open_page):
    page = open_page(served)
    page.locator("#topics tbody tr th a").first.click()
    page.wait_for_url("**/topic-*")
    assert page.get_by_role("heading", level=1).inner_text().startswith("Topic")
    page.locator("#clusters tbody tr th a").first.click()
    page.wait_for_url("**/cluster-*")
    assert page.get_by_text("was born").is_visible()
    assert page.get_by_text("Typical documents").is_visible()


def test_a_search_by_keyboard_finds_as_one_types(served, open_page):
    page = open_page(served)
    page.keyboard.press("/")
    page.keyboard.type("snow")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=snow")
    found = page.locator("#results tbody tr")
    assert found.count() >= 1
    page.locator("#q").fill("no such word")
    page.locator("#results h2", has_text="0 clusters").wait_for()
    assert found.count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_every_screen_and_can_be_read(served, open_page, scheme):
    for width in (360, 1280, 3840):
        page = open_page(served, viewport={"width": width, "height": 800}, color_scheme=scheme)
        page.locator("[data-show=rows]", has_text="150").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        result = page.evaluate(CONTRAST)
        assert result["checked"] > 50
        assert result["failures"] == []
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll("a, button, input:not([hidden]), svg[role=img]")]
                .filter((one) => one.checkVisibility() && !(one.textContent.trim()
                    || one.ariaLabel || one.labels?.length)).map((one) => one.outerHTML)"""
        )
        assert unnamed == []
