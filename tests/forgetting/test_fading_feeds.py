"""Times of records, and forgetting from the command line."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from typer.testing import CliRunner

from bnpstream import DocumentMixture
from bnpstream.cli import app
from bnpstream.plots import plot_events
from bnpstream.report.charts import bins_of
from bnpstream.runs.options import ModelOptions, OptionError, check_times, half_life_of
from bnpstream.sources import Options, open_source

START = datetime(2024, 2, 28, 12, tzinfo=UTC)
TOPICS = ("rain wind snow hail storm sun", "bond stock yield bank rate loan", "goal team match cup")


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result.stdout if code == 0 else result.stderr


def records(n=240):
    """Return texts an hour apart, about one topic after the other."""
    rng = np.random.default_rng((76, 1))
    found = []
    for i in range(n):
        words = rng.choice(TOPICS[3 * i // n].split(), size=8)
        when = START + timedelta(hours=i)
        found.append({"id": f"d{i}", "at": when.isoformat(), "text": " ".join(words)})
    return found


def written(path, found):
    path.write_text("".join(json.dumps(record) + "\n" for record in found))
    return path


@pytest.fixture(scope="module")
def feed(tmp_path_factory):
    return written(tmp_path_factory.mktemp("feed") / "feed.jsonl", records())


def read(path, **options):
    source = open_source(str(path), Options(**options))
    batches = [batch for batch, _ in source.batches(7)]
    times = [time for batch in batches for time in batch.times]
    rejects = [reject for batch in batches for reject in batch.rejects]
    return source.schema, times, rejects


EXPECTED = [0.0, 86400.5, -3600.0, 1.7e9]
CELLS = ["1970-01-01", "1970-01-02T00:00:00.5Z", "1970-01-01T00:00:00+01:00", "1700000000"]


def test_json_lines_have_times(tmp_path):
    cells = [*CELLS[:3], 1_700_000_000]
    path = written(tmp_path / "a.jsonl", [{"text": "a b", "at": cell} for cell in cells])
    schema, times, _ = read(path, time_field="at")
    assert schema.fields == {"text": "text", "time": "at"}
    assert times == EXPECTED


def test_rows_of_a_table_do_not_have_the_time_as_a_column(tmp_path):
    path = written(tmp_path / "a.jsonl", [{"x": 1.0, "y": 2.0, "at": i} for i in range(9)])
    schema, times, _ = read(path, time_field="at")
    assert schema.names == ("x", "y")
    assert times == list(range(9))
    assert read(path)[0].names == ("x", "y", "at")
    assert read(path, time_field="at", columns=("x", "at"))[0].names == ("x", "at")


@pytest.mark.parametrize("header", ["x,at,y", None])
def test_csv_has_times(tmp_path, header):
    lines = [f"{i},{cell},{i / 2}" for i, cell in enumerate(CELLS)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([header, *lines] if header else lines) + "\n")
    schema, times, _ = read(path, time_field="at" if header else "column2")
    assert schema.names == (("x", "y") if header else ("column1", "column3"))
    assert times == EXPECTED


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_arrow_has_times(tmp_path, kind):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    stamps = np.array([0, 86_400_500, -3_600_000], "datetime64[ms]")
    columns = {
        "dates": pa.array(stamps),
        "nanos": pa.array(stamps.astype("datetime64[ns]")),
        "zoned": pa.array(stamps, pa.timestamp("ms", "Europe/Paris")),
        "texts": CELLS[:3],
        "numbers": EXPECTED[:3],
        "days": pa.array(stamps.astype("datetime64[D]")),
        "x": [1.0, 2.0, 3.0],
    }
    path = tmp_path / f"a.{kind}"
    write = parquet.write_table if kind == "parquet" else feather.write_feather
    write(pa.table(columns), str(path))
    for name in ("dates", "nanos", "zoned", "texts", "numbers"):
        assert read(path, time_field=name, columns=("x",))[1] == EXPECTED[:3]
    assert read(path, time_field="days", columns=("x",))[1] == [0.0, 86400.0, -86400.0]


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet"])
def test_a_record_without_a_readable_time_is_rejected(tmp_path, name):
    cells = ["2024-01-01", None, "yesterday", "2024-01-02", "", "nan"]
    path = tmp_path / f"a.{name}"
    if name == "jsonl":
        written(path, [{"x": 1.0, "at": cell} for cell in cells])
    elif name == "csv":
        path.write_text("x,at\n" + "".join(f"1.0,{cell or ''}\n" for cell in cells))
    else:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pa.table({"x": [1.0] * 6, "at": cells}), path)
    _, times, rejects = read(path, time_field="at")
    assert len(times) == 2
    assert [reject.record for reject in rejects] == [1, 2, 4, 5]
    assert [reject.line for reject in rejects] == [n + (name == "csv") for n in (2, 3, 5, 6)]
    assert rejects[0].reason == "has no time 'at'"
    assert rejects[1].reason == "its time 'at' is 'yesterday', neither seconds nor ISO 8601"
    assert "nan" in rejects[3].reason


def test_formats_without_fields_have_no_times(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("some words\nand more\n")
    with pytest.raises(ValueError, match="the format text have no fields"):
        open_source(str(path), Options(time_field="at"))
    path = written(tmp_path / "a.jsonl", [{"text": "a"}])
    with pytest.raises(ValueError, match="has no column 'at'"):
        open_source(str(path), Options(time_field="at"))


@pytest.mark.parametrize(
    ("text", "value", "by_time"),
    [("10000", 1e4, False), ("2.5", 2.5, False), ("7d", 604800, True), ("36h", 129600, True),
     ("90m", 5400, True), ("30s", 30, True), ("1.5h", 5400, True)],
)  # fmt: skip
def test_half_lives_as_people_write_them(text, value, by_time):
    assert half_life_of(text) == (value, by_time)


@pytest.mark.parametrize("text", ["", "d", "-3", "0", "0d", "7w", "inf", "nan", "1e999d", "7 days"])
def test_what_is_no_half_life_is_refused(text):
    with pytest.raises(
        OptionError, match=r"--half-life is .*: give rows, such as 10000, or a time"
    ):
        half_life_of(text)


def test_a_time_needs_a_field_and_a_field_a_time():
    check_times(ModelOptions(half_life="7d"), "at")
    check_times(ModelOptions(half_life="700"), None)
    check_times(ModelOptions(), None)
    with pytest.raises(OptionError, match="also give --time-field"):
        check_times(ModelOptions(half_life="7d"), None)
    with pytest.raises(OptionError, match="700 counts rows"):
        check_times(ModelOptions(half_life="700"), "at")
    with pytest.raises(OptionError, match="it is not given"):
        check_times(ModelOptions(), "at")


def test_a_feed_forgets_by_time(feed, tmp_path):
    out, found = tmp_path / "run", records()
    options = ("--half-life", "8h", "--time-field", "at", "--prior", "nig", "--quiet")
    run("fit", feed, "--out", out, *options)
    model = DocumentMixture.load(out)
    own = DocumentMixture("nig", half_life=8 * 3600.0).partial_fit(
        [record["text"].split() for record in found],
        timestamps=np.array([record["at"][:19] for record in found], "datetime64[s]"),
    )
    assert model.total_log_evidence_ == own.total_log_evidence_
    assert model.lineage_ == own.lineage_
    lineage = [json.loads(line) for line in run("lineage", out, "--json").splitlines()]
    retired = [event["id"] for event in lineage if event["kind"] == "retire"]
    assert retired
    assert f"cluster {retired[0]} was dropped" in run("lineage", out, "--id", retired[0])
    assert f"retire of {retired[0]}" in run("lineage", out)
    shown = json.loads(run("clusters", out, "--json"))["clusters"]
    assert {cluster["id"] for cluster in shown}.isdisjoint(retired)
    run("report", out)
    page = (out / "report.html").read_text()
    assert f"{len(retired)} retired." in page
    # What is asked of the run needs no times.
    for record in found:
        del record["at"]
    other = written(tmp_path / "other.jsonl", found)
    assert len(run("predict", out, other, "--json").splitlines()) == len(found)
    assert json.loads(run("evaluate", out, other, "--json"))["documents"] == len(found)
    table = tmp_path / "other.csv"
    table.write_text("id,text\n" + "".join(f"{one['id']},{one['text']}\n" for one in found))
    assert len(run("predict", out, table, "--format", "csv", "--json").splitlines()) == len(found)


@pytest.mark.parametrize("half_life", [("--half-life", "8h", "--time-field", "at"),
                                       ("--half-life", "20")])  # fmt: skip
def test_a_run_that_goes_on_gives_the_same_bits(feed, tmp_path, half_life):
    whole, resumed, growing = tmp_path / "whole", tmp_path / "resumed", tmp_path / "feed.jsonl"
    lines = feed.read_text().splitlines(keepends=True)
    growing.write_text("".join(lines))
    run("fit", growing, "--out", whole, "--quiet", *half_life)
    for n in (110, 171, len(lines)):
        growing.write_text("".join(lines[:n]))
        source = [growing, *half_life] if n == 110 else []
        run("fit", *source, "--out", resumed, "--resume", "--quiet", "--batch-rows", 17)
    found, expected = (DocumentMixture.load(folder) for folder in (resumed, whole))
    for name in ("masses", "log_vacancy", "totals"):
        ours, theirs = (getattr(model.state_.arrays, name) for model in (found, expected))
        np.testing.assert_array_equal(ours, theirs)
    assert found.clock_ == expected.clock_
    assert found.clock_.n_ticks > 20
    assert found.lineage_ == expected.lineage_
    message = run("fit", "--out", resumed, "--resume", "--half-life", "9", code=1)
    assert "--half-life 9: this run was started with" in message


def test_the_command_line_says_what_does_not_go_together(feed, tmp_path):
    assert "also give --time-field" in run("fit", feed, "--half-life", "7d", code=2)
    assert "give rows, such as 10000" in run("fit", feed, "--half-life", "soon", code=2)
    assert "counts rows" in run("fit", feed, "--half-life", "70", "--time-field", "at", code=2)
    text = tmp_path / "plain.txt"
    text.write_text("some words\n")
    message = run("fit", text, "--half-life", "7d", "--time-field", "at", code=1)
    assert "records of the format text have no fields" in message


def test_pictures_know_of_retirement(feed, tmp_path):
    from bnpstream.runs.overview import Run

    run("fit", feed, "--out", tmp_path / "run", "--half-life", "15", "--quiet")
    described = Run(tmp_path / "run").describe()
    kinds = [event.kind for event in described.events]
    retired = [int(line[-1]) for line in bins_of(described)]  # the last column of the table
    assert sum(retired) == kinds.count("retire") > 0
    ax = plot_events(described.bin_ends, described.events)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "retired" in labels
    ax.figure.clear()
