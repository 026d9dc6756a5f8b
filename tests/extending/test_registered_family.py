"""A family that is registered by name needs no edit anywhere else."""

from dataclasses import dataclass

import numpy as np
import pytest
from waits import Waits, draw_waits

from bnpstream import StreamingMixture
from bnpstream.engine.codec import decode, encode
from bnpstream.inference.odds import pool_of
from bnpstream.likelihoods import KNOWN_CLASSES, NAMED_LIKELIHOODS, InputTraits, register
from bnpstream.likelihoods.pools import Pool
from bnpstream.report import render_report
from bnpstream.runs.overview import Run
from commands import run, run_json


@dataclass(frozen=True)
class PlainWaits(Waits):
    """Waiting times in NumPy, with means to show to people."""

    def posterior_mean(self, statistics):
        return (self.shape + statistics[:, -1:]) / (self.scale + statistics[:, :-1])


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Register the family for one test."""
    for table in (NAMED_LIKELIHOODS, KNOWN_CLASSES):
        for name in ("waits", "PlainWaits"):
            monkeypatch.setitem(table, name, None)
            monkeypatch.delitem(table, name)
    register("waits")(PlainWaits)


def test_a_name_stands_for_the_family_and_its_class_can_be_saved():
    assert NAMED_LIKELIHOODS["waits"] == PlainWaits()
    assert KNOWN_CLASSES["PlainWaits"] is PlainWaits
    assert list(NAMED_LIKELIHOODS)[:2] == ["auto", "multinomial"]
    found = decode(encode(PlainWaits(3.0, 0.5)))
    assert found == PlainWaits(3.0, 0.5)


def test_it_pools_and_merges():
    X, _ = draw_waits(120, 1)
    model = StreamingMixture("nig", "waits").fit(X)
    assert model.n_clusters_ > 2
    assert type(pool_of(model.stream_.model, model.state_)) is Pool
    assert model.merge_tree(2).cut(2).size == model.n_clusters_
    assert model.coarsened(2).n_clusters_ == 2
    eager = StreamingMixture("nig", "waits", n_passes=2, merge_threshold=-50.0).fit(X)
    assert any(event.kind == "merge" for event in eager.lineage_)


def test_it_has_the_defaults_of_a_plain_family():
    X, _ = draw_waits(30, 2)
    family = PlainWaits()
    assert (family.feature_kind, family.input, family.merges_when_done) == (
        "columns",
        InputTraits(),
        False,
    )
    assert family.n_tokens(X) is None
    assert family.mean_names(["a", "b", "c"]) == ["a", "b", "c"]
    assert family.typicality(X).scores(np.arange(30.0)).tolist() == list(range(30))
    assert family.learnt(2.0) == {"scale": 2.0}
    batch = family.encode(X)
    assert family.expected_score(batch, lambda: "rows", lambda rows: (rows, 1.0)) == ("rows", 1.0)


def test_a_run_is_described_by_columns_and_reported(tmp_path):
    X, _ = draw_waits(150, 3)
    table = tmp_path / "waits.csv"
    np.savetxt(table, X, delimiter=",", header="queue,call,repair", comments="", fmt="%.17g")
    out = tmp_path / "run"
    run("fit", table, "--out", out, "--prior", "nig", "--likelihood", "waits", "--quiet")
    described = Run(out).describe(with_tree=True)
    assert (described.kind, described.tokens) == ("columns", None)
    first = described.clusters[0]
    assert [feature.name for feature in first.likely] == ["queue", "call", "repair"]
    assert {feature.name for feature in first.lifted} == {"queue", "call", "repair"}
    lifts = [abs(feature.lift) for feature in first.lifted]
    assert lifts == sorted(lifts, reverse=True)
    assert len(first.exemplars) == 3
    page = render_report(described)
    assert "repair" in page
    assert run_json("evaluate", out, table)["tokens"] is None
