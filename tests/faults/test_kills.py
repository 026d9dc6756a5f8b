"""A process that is killed at any moment and resumed ends as if nothing had happened."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from killing import assert_same_run, read_answers, run_to_end, started, write_feed

from commands import run

OFTEN = ("--checkpoint-rows", "150", "--batch-rows", "64", "--quiet")
MODELS = {
    "growing": ("--prior", "nig", "--prefix-rows", "300"),
    "window": ("--hash-bits", "10", "--revisit", "200", "--revisits", "2"),
    "passes": ("--hash-bits", "10", "--alpha", "0.3"),
    "merges": ("--hash-bits", "10", "--merge-threshold", "0"),
}
THREADS = ("--hash-bits", "10", "--block-rows", "400", "--staleness", "1")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return a feed, and what undisturbed runs over it come to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    feed = folder / "feed.jsonl"
    ids = write_feed(feed, 3000, seed=0)
    return folder, feed, ids, {}


def fit_options(model):
    return (*MODELS[model], *(("--passes", "4") if model == "passes" else ()))


def timed(words, **files):
    """Run a command to its end, and return the seconds of work in which it may be killed."""
    began = time.perf_counter()
    run_to_end(words, seed=0, most_kills=0, **files)
    return time.perf_counter() - began


def expected_fit(undisturbed, model):
    folder, feed, _, done = undisturbed
    if ("fit", model) not in done:
        words, out = ("fit", feed, *fit_options(model), *OFTEN), folder / f"fit-{model}"
        run(*words, "--out", folder / f"before-{model}")  # loops are compiled in this process
        done["fit", model] = out, timed((*words, "--out", out))
    return done["fit", model]


def expected_stream(undisturbed, model):
    folder, feed, _, done = undisturbed
    if ("stream", model) not in done:
        out, answers = folder / f"stream-{model}", folder / f"stream-{model}.jsonl"
        words = ("stream", *MODELS[model], *OFTEN, "--out")
        run("fit", feed, *words[1:], folder / f"before-stream-{model}")
        seconds = timed((*words, out), stdin=feed, stdout=answers)
        done["stream", model] = (out, answers, seconds)
    return done["stream", model]


def check_fit(undisturbed, folder, model, seed):
    """Kill fit and resume it; return the number of kills."""
    expected, seconds = expected_fit(undisturbed, model)
    out = folder / f"fit-{seed}"
    options = ("--out", out, *fit_options(model), *OFTEN, "--resume")
    kills = run_to_end(("fit", undisturbed[1], *options), seed, longest=seconds)
    assert_same_run(out, expected)
    return kills


def check_stream(undisturbed, folder, model, seed):
    """Kill stream and resume it by replay; return the number of kills."""
    _, feed, ids, _ = undisturbed
    expected_run, expected_answers, seconds = expected_stream(undisturbed, model)
    out, answers = folder / f"stream-{seed}", folder / f"stream-{seed}.jsonl"
    words = ("stream", "--out", out, *MODELS[model], *OFTEN, "--resume")
    kills = run_to_end(words, seed, stdin=feed, stdout=answers, longest=seconds)
    assert_same_run(out, expected_run)
    found, expected = read_answers(answers), read_answers(expected_answers)
    assert sorted(found) == sorted(expected)
    assert [found[record]["id"] for record in sorted(found)] == ids
    for record, answer in found.items():
        if "provisional" not in answer and "provisional" not in expected[record]:
            assert answer == expected[record]
    return kills


@pytest.mark.parametrize("model", ["growing", "passes"])
def test_fit_survives_kills(undisturbed, tmp_path, model):
    assert check_fit(undisturbed, tmp_path, model, seed=1) > 0


def test_fit_by_threads_survives_kills(undisturbed, tmp_path):
    """Whatever the number of threads, before and after."""
    _, feed, _, _ = undisturbed
    one, two = tmp_path / "one", tmp_path / "two"
    words = ("fit", feed, *THREADS, *OFTEN, "--out")
    run(*words, one)
    options = ("--resume", "--jobs", "2")
    assert run_to_end((*words, two, *options), seed=1, begin=started) > 0
    assert_same_run(two, one)


@pytest.mark.parametrize("model", ["growing", "window"])
def test_stream_survives_kills(undisturbed, tmp_path, model):
    assert check_stream(undisturbed, tmp_path, model, seed=1) > 0


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_fit, check_stream])
def test_two_hundred_runs_survive_kills(undisturbed, tmp_path, check):
    models = [name for name in MODELS if name != "passes" or check is check_fit]
    for model in models:
        (expected_fit if check is check_fit else expected_stream)(undisturbed, model)
    with ThreadPoolExecutor(2) as two:
        jobs = [
            two.submit(check, undisturbed, tmp_path, models[seed % len(models)], seed)
            for seed in range(200)
        ]
        kills = [job.result() for job in jobs]
    print(f"{check.__name__}: 200 runs, {sum(kills)} kills")
    assert sum(kills) > 200
