"""The live page is open in a browser while the learner is killed again and again."""

import tempfile
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="starlette is missing: pip install 'bnpstream[serve]'")

from processes import check_kills
from servers import running

from serving import PATIENCE, serving


def test_a_page_that_is_open_ends_with_what_is_true(browser, tmp_path):
    complaints = []
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        running("redis", Path(folder)) as own,
        serving(tmp_path / "run-heard", ready=False) as served,
        browser.new_context() as context,
    ):
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(served.address)
        assert page.locator("#state").inner_text() == "nothing learnt yet"
        check_kills(
            own, tmp_path, "heard", 3, seed=2, watch=lambda: page.locator("#state").inner_text()
        )
        page.locator("[data-show=rows]", has_text="595").wait_for()
        page.locator("[data-show=rejects]", has_text="5").wait_for()
        page.locator("#river .axis", has_text="595").wait_for()
        page.locator("#state", has_text="read to the end").wait_for()
        assert "not a number" in page.locator("#rejects").inner_text()
        assert complaints == []
