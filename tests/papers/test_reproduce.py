"""The paper's experiments at a small size: how they run, and which claims hold even then."""

import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from bnpstream.cli.reproduce import ROOT, import_papers
from commands import run, run_json

papers = import_papers(ROOT)
from tank2015 import bars, differences, page, showing, steps  # noqa: E402  found by the line above


def verdicts(results):
    return {claim["text"]: claim["verdict"] for claim in results["claims"]}


def files(out):
    return {path.name for path in (out / "results").iterdir()}


def test_bars_are_recovered(tmp_path):
    results = papers.reproduce("bars", tmp_path, small=True)
    assert set(verdicts(results).values()) == {"holds"}
    expected = {"bars.json"} | {f"bars-components.{ending}" for ending in ("png", "svg")}
    expected |= {f"bars-robustness.{ending}" for ending in ("png", "svg", "csv", "md")}
    assert files(tmp_path) == expected
    text = (tmp_path / "README.md").read_text()
    assert "Of 3 claims 3 hold." in text
    assert "![bars-components](results/bars-components.png)" in text
    again = papers.reproduce("bars", tmp_path, small=True)
    assert (results["changed"], again["changed"], again["resumed"]) == (None, [], 0)


def test_power_law(tmp_path):
    results = papers.reproduce("powerlaw", tmp_path, small=True)
    found = verdicts(results)
    assert found["EP improves the predictions of both."] == "holds"
    increasing = "As data increase, NIG gives an increasingly better fit: "
    # Two orders of a quarter of the documents do not tell the lead at the middle from the first.
    assert found[increasing + "log-likelihood."] == "underpowered"
    assert found[increasing + "number of clusters."] == "holds"
    close = [verdict for text, verdict in found.items() if text.startswith("One pass of ADF comes")]
    assert close == ["holds"]


def test_kos(tmp_path, kos):
    results = papers.reproduce("kos", tmp_path, small=True)
    assert verdicts(results)["After one epoch ADF is much better than Gibbs."] == "holds"
    table = (tmp_path / "results" / "kos-methods.csv").read_text().splitlines()
    rows = {line.rsplit(",", 7)[0].strip('"'): line for line in table[1:]}
    level = {name: float(line.split(",")[-6 if '"' in line else 3]) for name, line in rows.items()}
    assert len(level) == 14
    learnt = [value for name, value in level.items() if "learnt" in name]
    assert min(learnt) > max(value for name, value in level.items() if "learnt" not in name)


def test_new_york_times(tmp_path, nyt8447):
    results = papers.reproduce("nyt", tmp_path, small=True)
    found = verdicts(results)
    topics = "Clusters with the highest weights are interpretable topics (nyt8447)."
    assert found[topics] == "holds"
    pruned = "Pruning leaves 266,000 documents and 7,841 words of the UCI corpus."
    assert found[pruned] == "cannot be tested here"


def test_files_of_the_uci_corpus_run_through_the_same_pipeline(tmp_path):
    docword, vocab = tmp_path / "docword.txt", tmp_path / "vocab.txt"
    words = [f"w{i}" for i in range(30)]
    vocab.write_text("".join(f"{word}\n" for word in words))
    # Word 30 is in 19 documents: one too few. Of 300 documents the last has one word too few.
    lines = [f"{d} {1 + (7 * d + i) % 28} {1 + i % 3}" for d in range(1, 300) for i in range(12)]
    lines += [f"{d} 30 1" for d in range(1, 20)] + ["300 1 19"]
    lines.sort(key=lambda line: tuple(map(int, line.split())))
    docword.write_text(f"300\n30\n{len(lines)}\n" + "".join(f"{line}\n" for line in lines))
    out = tmp_path / "out"
    given = ("--docword", docword, "--vocab", vocab, "--out", out)
    (answer,) = run_json("reproduce", "nyt", *given)
    assert answer["claims"][0]["ours"] == "299 documents and 28 words"
    assert answer["claims"][0]["verdict"] == "does not hold"
    assert "nyt-topics-uci.png" in files(out)


def test_a_killed_run_goes_on_to_the_same_numbers(tmp_path):
    whole = papers.reproduce("bars", tmp_path / "whole", small=True)
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "bnpstream", "reproduce", "bars", "--small", "--out", str(out)]
    journal = out / "results" / ".bars.steps.jsonl"
    with subprocess.Popen(command) as process:
        while not journal.exists() or journal.read_bytes().count(b"\n") < 5:
            assert process.poll() is None
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    with journal.open("ab") as file:
        file.write(b'{"name": "half a li')
    left = journal.read_bytes().count(b"\n") - 1
    results = papers.reproduce("bars", out, small=True)
    assert results["resumed"] == left >= 4
    assert not journal.exists()
    assert steps.changes(whole["steps"], results["steps"]) == []
    for name in ("bars-components.png", "bars-components.svg", "bars-robustness.csv"):
        one, other = (tmp_path / run / "results" / name for run in ("whole", "killed"))
        assert one.read_bytes() == other.read_bytes()


def test_steps_of_other_code_are_not_used(tmp_path):
    journal = steps.Journal(tmp_path / "steps.jsonl", "one")
    journal.add({"name": "a", "found": {"x": 1.5}})
    assert steps.Journal(tmp_path / "steps.jsonl", "one").done == journal.done
    assert steps.Journal(tmp_path / "steps.jsonl", "another").done == {}
    assert steps.fingerprint(bars.FULL) != steps.fingerprint(bars.SMALL)


def test_changes_leave_timings_out():
    one = [{"name": "a", "found": {"x": 1, "curve": {"y": [2], "seconds_in_pass": 3.0}}}]
    faster = [{"name": "a", "found": {"x": 1, "curve": {"y": [2], "seconds_in_pass": 1.0}}}]
    other = [{"name": "a", "found": {"x": 1, "curve": {"y": [3], "seconds_in_pass": 3.0}}}]
    assert steps.changes(one, faster) == []
    assert steps.changes(one, other) == ["a"]


@pytest.mark.parametrize(
    ("differences", "needs", "verdict"),
    [
        ([(4.0, 1.0)], all, "holds"),
        ([(4.0, math.nan)], all, "holds"),  # one run
        ([(4.0, 2.5)], all, "underpowered"),
        ([(-4.0, 2.5)], all, "underpowered"),
        ([(-4.0, 1.0)], all, "does not hold"),
        ([(4.0, 1.0), (-1.0, 1.0)], all, "underpowered"),
        ([(4.0, 2.5), (-4.0, 1.0)], all, "does not hold"),
        ([(4.0, 1.0), (-4.0, 1.0)], any, "holds"),
        ([(1.0, 1.0), (-4.0, 1.0)], any, "underpowered"),
        ([(-4.0, 1.0), (-3.0, 1.0)], any, "does not hold"),
    ],
)
def test_noise_is_no_verdict(differences, needs, verdict):
    claim = showing.Claim.ahead("text", "paper", "ours", differences, needs)
    assert claim.verdict == verdict
    assert ("could not have been detected" in claim.ours) == (verdict == "underpowered")


def restricted_likelihood(values, between, within):
    """Return the restricted log likelihood of a random effect per row, by matrices."""
    n_rows, n_columns = values.shape
    block = within * np.eye(n_columns) + between
    covariance, ones = np.kron(np.eye(n_rows), block), np.ones((values.size, 1))
    inverse = np.linalg.inv(covariance)
    information = (ones.T @ inverse @ ones)[0, 0]
    mean = (ones.T @ inverse @ values.ravel())[0] / information
    left = values.ravel() - mean
    log_determinants = np.linalg.slogdet(covariance)[1] + np.log(information)
    return -0.5 * (log_determinants + left @ inverse @ left), mean, information**-0.5


@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_error_over_splits_is_that_of_a_mixed_effects_model(spread):
    rng = np.random.default_rng((91, int(spread)))
    values = rng.normal(size=(5, 1)) * spread + rng.normal(size=(5, 4)) + 2.0
    if spread == 0.0:  # rows differ by less than chance
        values += 0.9 * (values.mean() - values.mean(axis=1, keepdims=True))
    found = minimize(
        lambda logs: -restricted_likelihood(values, *np.exp(logs))[0],
        np.zeros(2),
        method="Nelder-Mead",
        bounds=[(-30.0, 10.0)] * 2,
        options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 4000},
    )
    _, mean, error = restricted_likelihood(values, *np.exp(found.x))
    assert differences.over_splits(values) == pytest.approx((mean, error), rel=1e-4)


def test_a_long_run_judges_alone(tmp_path):
    text, other = "A sentence of the paper.", "Another one."

    def results(name, *claims):
        return {"experiment": name, "claims": [{"text": t, "verdict": v} for t, v in claims]}

    short = results("kos", (text, "underpowered"), (other, "holds"))
    long = results("kos-full", (text, "holds"))
    judged = [(name, one["text"], one["verdict"]) for name, one in page.judged([short, long])]
    assert judged == [("kos", other, "holds"), ("kos-full", text, "holds")]


def test_power_law_at_length(tmp_path):
    results = papers.reproduce("powerlaw-full", tmp_path, small=True)
    told, learnt = ({}, {})
    for one in results["steps"]:
        name, found = one["arguments"].get("name"), one["found"]
        if one["step"] == "bound":
            told[name] = found["log_predictive"]
        if one["step"] == "learn":
            learnt.setdefault(name, []).append(found["log_predictive"][-1])
        if one["step"] == "weigh":
            assert found["best"] == np.argmax(found["evidence"])
            assert all(point["epsilon"] >= point["sigma"] for point in found["points"])
    assert len(told) == len(learnt) == 6
    assert all(told[name] > np.mean(learnt[name]) for name in told)
    shown = {one["name"] for one in results["exhibits"]}
    assert shown == {"powerlaw-full-tuned", "powerlaw-full-sizes"}
    assert "## powerlaw-full" in (tmp_path / "README.md").read_text()


def test_kos_at_length(tmp_path, kos):
    results = papers.reproduce("kos-full", tmp_path, small=True)
    assert [one["name"] for one in results["exhibits"]] == ["kos-full-pairs", "kos-full-chains"]
    texts = [claim["text"] for claim in results["claims"]]
    assert texts[0] == "NIG predicts better than DP: ADF."
    assert "R-hat" in results["claims"][-1]["ours"]


def test_elsewhere_the_command_says_that_it_needs_a_checkout(tmp_path):
    with pytest.raises(ModuleNotFoundError, match="checkout"):
        import_papers(tmp_path)


def test_complaints(tmp_path):
    assert "no experiment 'foo'" in run("reproduce", "foo", code=2)
    assert "give --out" in run("reproduce", "bars", "--small", code=2)
    assert "--full belongs to powerlaw, kos" in run("reproduce", "bars", "--full", code=2)
    assert "belong to nyt" in run("reproduce", "kos", "--docword", "x", "--vocab", "y", code=2)


def test_committed_results_are_whole():
    """The page is what the results say, and every experiment has some."""
    folder = Path(papers.__file__).parent
    text = (folder / "README.md").read_text()
    found = [
        json.loads((folder / "results" / f"{name}.json").read_text())
        for name in papers.EXPERIMENTS + papers.LONG
    ]
    for results in found:
        for exhibit in results["exhibits"]:
            endings = (".png", ".svg") if exhibit["kind"] == "figure" else (".csv", ".md")
            for ending in endings:
                assert (folder / "results" / f"{exhibit['name']}{ending}").is_file()
    for _, claim in page.judged(found):
        for said in (claim["text"], claim["ours"]):
            assert said.replace("|", "\\|") in text  # else it would end a cell of the table
