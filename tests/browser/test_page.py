"""The report in a real browser, as people use it."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bnpstream.cli import app
from bnpstream.report import write_report
from bnpstream.runs.description import Exemplar, Feature
from run_examples import many_clusters_run, small_run

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_report(small_run(), tmp_path_factory.mktemp("small") / "page.html")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return write_report(many_clusters_run(2500), tmp_path_factory.mktemp("many") / "page.html")


def pixels_run():
    """Return a run over images of two by three pixels."""
    run = small_run(kind="pixels", image_shape=(2, 3))
    images = ([0.5, 0.5, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1.0], [0.1, 0.2, 0.3, 0.2, 0.1, 0.1])
    pairs = zip(run.clusters, images, strict=True)
    return replace(run, clusters=[replace(cluster, mean=mean) for cluster, mean in pairs])


def unwieldy_run(kind):
    """Return a run whose words have no place to break."""
    word = "w" * 3000
    run = small_run(kind=kind, name=word, reject_reasons=[(word, 10**9)], versions={word: word})
    clusters = [
        replace(
            cluster,
            id=10**12 + cluster.id,
            size=1e9,
            born=10**9,
            likely=[Feature(word, 1e9, 1e9), Feature("x", 1.0, 1.0)],
            lifted=[Feature(word, 1e9, -1e9), Feature("x", 1.0, 1.0)],
            exemplars=[Exemplar(0, word, 1.0, word)],
        )
        for cluster in run.clusters
    ]
    return replace(run, clusters=clusters, rows=10**12, settings={word: {word: word}})


@pytest.fixture(scope="module")
def pages(small, tmp_path_factory):
    """Return pages of every kind."""
    folder = tmp_path_factory.mktemp("pages")
    runs = {
        "columns": small_run(kind="columns"),
        "pixels": pixels_run(),
        "long-words": unwieldy_run("words"),
        "long-columns": unwieldy_run("columns"),
    }
    made = {name: write_report(run, folder / f"{name}.html") for name, run in runs.items()}
    return {"words": small} | made


KINDS = ["words", "columns", "pixels", "long-words", "long-columns"]


def shown(page):
    """Return the ids of the clusters that can be seen, from top to bottom."""
    return page.evaluate(
        """() => [...document.querySelectorAll("#cluster-table > tbody > tr")]
            .filter((row) => row.checkVisibility()).map((row) => Number(row.dataset.id))"""
    )


def test_headers_sort_both_ways(visit, small):
    page = visit(small)
    assert shown(page) == [7, 2, 12]
    for name, first, second in (
        ("Cluster", [2, 7, 12], [12, 7, 2]),
        ("Share", [7, 2, 12], [12, 2, 7]),
        ("Size", [7, 2, 12], [12, 2, 7]),
        ("Born at", [12, 2, 7], [7, 2, 12]),
        ("Recent", [12, 2, 7], [7, 2, 12]),
    ):
        button = page.get_by_role("button", name=name, exact=True)
        head = page.get_by_role("columnheader", name=name, exact=True)
        button.click()
        assert shown(page) == first, name
        way = head.get_attribute("aria-sort")
        assert way == ("ascending" if name == "Cluster" else "descending")
        button.click()
        assert shown(page) == second, name
        assert {way, head.get_attribute("aria-sort")} == {"ascending", "descending"}
        assert page.locator("#cluster-table [aria-sort]").count() == 1


def test_what_is_not_known_comes_last_either_way(visit, tmp_path):
    run = small_run()
    clusters = [replace(run.clusters[0], born=None), *run.clusters[1:]]
    page = visit(write_report(replace(run, clusters=clusters), tmp_path / "page.html"))
    for expected in ([12, 2, 7], [2, 12, 7]):
        page.get_by_role("button", name="Born at").click()
        assert shown(page) == expected


def test_search_finds_words_records_and_numbers(visit, small):
    page = visit(small)
    box = page.get_by_label("Search")
    for query, found in (
        ("GOAL", [12]),
        ("the", [7, 2, 12]),
        ("doc-2", [2]),
        ("rest stocks", [2]),
        ("12", [12]),
        ("typical", []),
        ("no such word", []),
    ):
        box.fill(query)
        assert shown(page) == found, query
        assert page.get_by_role("status").inner_text() == f"{len(found)} of 3 clusters"
    box.fill("")
    assert shown(page) == [7, 2, 12]


def test_a_click_opens_and_closes_a_cluster(visit, small):
    page = visit(small)
    row = page.locator("#cluster-12")
    inside = row.get_by_text("goal and the rest")
    assert not inside.is_visible()
    row.locator("summary").click()
    assert inside.is_visible()
    row.locator("summary").click()
    assert not inside.is_visible()


def test_a_link_opens_its_cluster(visit, small):
    page = visit(small, "#cluster-12", viewport={"width": 1000, "height": 300})
    row = page.locator("#cluster-12")
    row.get_by_text("goal and the rest").wait_for()
    box = row.locator("summary").bounding_box()
    middle = [box["x"] + 5, box["y"] + box["height"] / 2]
    seen = "([x, y]) => document.elementFromPoint(x, y).closest('tr')?.id"
    assert page.evaluate(seen, middle) == "cluster-12"  # and not under what sticks to the top
    page.keyboard.press("Tab")  # goes on from there
    assert page.evaluate("document.activeElement.closest('tr').id") == "cluster-12"
    page.locator("#cluster-2 th a").click()
    page.locator("#cluster-2").get_by_text("stocks and the rest").wait_for()
    page.locator("#cluster-2 summary").click()
    page.locator("#cluster-2 th a").click()  # the address is the same: still it opens
    page.locator("#cluster-2").get_by_text("stocks and the rest").wait_for()


def test_words_switch_between_distinctive_and_likely(visit, small):
    page = visit(small)
    row = page.locator("#cluster-7")
    assert row.get_by_text("Distinctive words").is_visible()
    assert row.get_by_text("rain-most").first.is_visible()
    assert row.get_by_text("12\u00d7").is_visible()
    page.get_by_label("likely").check(force=True)
    assert row.get_by_text("Likely words").is_visible()
    assert not row.get_by_text("rain-most").first.is_visible()


@pytest.mark.parametrize(("width", "columns"), [(1600, 2), (820, 2), (360, 1)])
def test_charts_stand_side_by_side(visit, small, width, columns):
    page = visit(small, viewport={"width": width, "height": 740})
    lefts = {round(chart.bounding_box()["x"]) for chart in page.locator(".charts figure").all()}
    assert len(lefts) == columns


def test_bars_are_as_long_as_the_numbers(visit, small):
    page = visit(small)
    page.get_by_label("likely").check(force=True)
    bars = page.locator("#cluster-7 .likely .bars i")
    first, second = (bars.nth(i).bounding_box()["width"] for i in (0, 1))
    assert second / first == pytest.approx(0.125 / 0.25, abs=0.02)


def test_thousands_are_shown_in_parts(visit, many):
    page = visit(many)
    assert len(shown(page)) == 200
    assert page.locator("#more").inner_text() == "Show 200 more"
    page.locator("#more").click()
    assert len(shown(page)) == 400
    page.locator("#search").fill("word1777-0")
    assert shown(page) == [3 * 1777 + 1]
    page.locator("#search").fill("")
    page.locator("th[data-sort=id] button").dblclick()
    assert shown(page)[0] == 3 * 1999 + 1


def test_a_link_reaches_a_row_that_is_not_shown_yet(visit, many):
    page = visit(many, f"#cluster-{3 * 1777 + 1}")
    assert page.locator(f"#cluster-{3 * 1777 + 1}").is_visible()
    assert page.evaluate("scrollY") > 1000


def test_the_theme_follows_the_system_and_can_be_changed(visit, small):
    def brightness(page):
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(float, colour[4:-1].split(",")))

    assert brightness(visit(small, color_scheme="light")) > 700
    page = visit(small, color_scheme="dark")
    assert brightness(page) < 100
    page.get_by_role("button", name="Light theme").click()
    assert brightness(page) > 700
    page.reload()
    assert brightness(page) > 700
    page.get_by_role("button", name="Dark theme").click()
    assert brightness(page) < 100


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [360, 700, 820, 1280])
def test_nothing_sticks_out(visit, pages, kind, width):
    page = visit(pages[kind], viewport={"width": width, "height": 740})
    page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    beyond = page.evaluate(
        """(width) => [...document.querySelectorAll("main *, header *, nav *")]
            .filter((e) => e.checkVisibility() && !e.closest(".scroll, .sr"))
            .filter((e) => e.getBoundingClientRect().right > width + 1)
            .map((e) => e.outerHTML.slice(0, 80))""",
        width,
    )
    assert beyond == []


@pytest.mark.parametrize("kind", ["words", "columns", "pixels"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_text_stands_out_from_what_is_behind_it(visit, pages, kind, theme, width):
    page = visit(pages[kind], color_scheme=theme, viewport={"width": width, "height": 740})
    page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    result = page.evaluate(CONTRAST)
    assert result["checked"] > 100
    assert result["failures"] == []


def test_without_javascript_everything_is_there(visit, small):
    page = visit(small, java_script_enabled=False)
    assert shown(page) == [7, 2, 12]
    assert page.locator(".charts svg:visible").count() == 4
    assert not page.locator("#search").is_visible()
    assert not page.locator("#theme").is_visible()
    assert page.get_by_role("button").count() == 0
    page.locator("#cluster-12 summary").click()
    assert page.locator("#cluster-12").get_by_text("goal and the rest").is_visible()
    assert page.locator("#cluster-12").get_by_text("goal-most").first.is_visible()
    page.get_by_text("likely", exact=True).click()
    assert not page.locator("#cluster-12").get_by_text("goal-most").first.is_visible()


def test_everything_works_with_the_keyboard(visit, small):
    page = visit(small)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["width"] > 50
    page.keyboard.press("Enter")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        name, drawn = page.evaluate(
            """() => {
              const e = document.activeElement;
              const ring = e.type === "radio" ? e.nextElementSibling : e;
              const style = getComputedStyle(ring);
              const drawn = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
              return [e.id || e.textContent.trim(), drawn];
            }"""
        )
        if page.evaluate("document.activeElement === document.body"):
            break
        assert drawn, name
        reached.add(name)
        if name == "words-lifted":
            page.keyboard.press("ArrowRight")
            assert page.locator("#words-likely").is_checked()
        if name == "Born at":
            page.keyboard.press("Enter")
            assert shown(page) == [12, 2, 7]
        if page.evaluate("document.activeElement.matches('#cluster-2 summary')"):
            page.keyboard.press("Space")
            assert page.locator("#cluster-2").get_by_text("stocks and the rest").is_visible()
            break
    else:
        pytest.fail("cluster 2 was not reached")
    assert {"search", "Cluster", "Share", "Size", "Born at", "Recent"} <= reached


def test_controls_and_landmarks_have_names(visit, small):
    page = visit(small, viewport=PHONE)
    for role in ("main", "navigation", "banner", "contentinfo"):
        assert page.get_by_role(role).count() == 1, role
    assert page.get_by_label("Sort by").is_visible()
    page.get_by_label("Sort by").select_option("recent growth")
    assert shown(page) == [12, 2, 7]
    for name in ("Along the stream", "Clusters", "Rejected records", "Settings and versions"):
        assert page.get_by_role("region", name=name, exact=True).count() == 1, name
    assert page.get_by_role("img").count() == 4


def test_paper_gets_light_colours_and_no_controls(visit, small):
    page = visit(small, color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator("#search").is_visible()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(29, 33, 39)"


def test_hostile_words_do_nothing(visit, tmp_path):
    words = [
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)</script>",
        "</script><b>",
        "\u202eabc",
    ]
    run = small_run(name=words[0])
    features = [Feature(word, 0.5, 2.0) for word in words]
    clusters = [replace(run.clusters[0], likely=features, lifted=features)]
    page = visit(write_report(replace(run, clusters=clusters), tmp_path / "page.html"))
    assert page.get_by_role("heading", level=1).inner_text() == words[0]
    for word in [*words[:-1], "\\u202eabc"]:  # what changes the direction of text is an escape
        assert (
            page.locator("#cluster-7 .bars >> visible=true")
            .get_by_text(word, exact=True)
            .first.is_visible()
        )


def test_the_page_of_a_real_run_is_used(visit, tmp_path):
    """From a feed to the page by the command line, then sorted, searched and opened."""
    rng = random.Random(0)
    topics = (
        "rain wind snow hail storm",
        "bond stock yield bank loan",
        "goal team match cup goals",
    )
    with (tmp_path / "feed.jsonl").open("w") as file:
        for i in range(300):
            words = rng.choices(topics[min(i // 50, rng.randrange(3))].split(), k=8)
            file.write(json.dumps({"id": f"d{i}", "text": " ".join(words)}) + "\n")
    runner, out = CliRunner(), str(tmp_path / "run")
    for command in (["fit", str(tmp_path / "feed.jsonl"), "--out", out], ["report", out]):
        assert runner.invoke(app, command).exit_code == 0
    page = visit(tmp_path / "run" / "report.html")
    every = shown(page)
    assert len(every) >= 3
    page.get_by_role("button", name="Size").click()
    assert sorted(shown(page)) == sorted(every)
    page.get_by_label("Search").fill("stock")
    (found, *_) = shown(page)
    assert len(shown(page)) < len(every)
    inside = page.locator(f"#cluster-{found}").get_by_text("Typical documents")
    was_open = inside.is_visible()  # the heaviest is
    page.locator(f"#cluster-{found} summary").click()
    assert inside.is_visible() != was_open
