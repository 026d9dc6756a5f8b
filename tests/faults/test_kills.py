"""A process that is killed at any moment and resumed ends as if nothing had happened."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from killing import (
    assert_same_run,
    command,
    read_answers,
    run_to_end,
    write_feed,
)

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


def expected_fit(undisturbed, model):
    folder, feed, _, done = undisturbed
    if ("fit", model) not in done:
        run = folder / f"fit-{model}"
        arguments = command("fit", feed, "--out", run, *fit_options(model), *OFTEN)
        run_to_end(arguments, seed=0, most_kills=0)
        done["fit", model] = run
    return done["fit", model]


def expected_stream(undisturbed, model):
    folder, feed, _, done = undisturbed
    if ("stream", model) not in done:
        run, answers = folder / f"stream-{model}", folder / f"stream-{model}.jsonl"
        arguments = command("stream", "--out", run, *MODELS[model], *OFTEN)
        run_to_end(arguments, seed=0, stdin=feed, stdout=answers, most_kills=0)
        done["stream", model] = (run, answers)
    return done["stream", model]


def check_fit(undisturbed, folder, model, seed):
    """Kill fit and resume it; return the number of kills."""
    expected = expected_fit(undisturbed, model)
    run = folder / f"fit-{seed}"
    options = ("--out", run, *fit_options(model), *OFTEN, "--resume")
    kills = run_to_end(command("fit", undisturbed[1], *options), seed)
    assert_same_run(run, expected)
    return kills


def check_stream(undisturbed, folder, model, seed):
    """Kill stream and resume it by replay; return the number of kills."""
    _, feed, ids, _ = undisturbed
    expected_run, expected_answers = expected_stream(undisturbed, model)
    run, answers = folder / f"stream-{seed}", folder / f"stream-{seed}.jsonl"
    arguments = command("stream", "--out", run, *MODELS[model], *OFTEN, "--resume")
    kills = run_to_end(arguments, seed, stdin=feed, stdout=answers)
    assert_same_run(run, expected_run)
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
    run_to_end(command("fit", feed, "--out", one, *THREADS, *OFTEN), seed=0, most_kills=0)
    options = ("--out", two, *THREADS, *OFTEN, "--resume", "--jobs", "2")
    assert run_to_end(command("fit", feed, *options), seed=1) > 0
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
