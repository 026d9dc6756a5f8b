"""Corpora fetched from a real server: interrupted, changed, refused, damaged, there already."""

import fcntl
import gzip
import hashlib
import os
import re
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from bnpstream.datasets import FetchError, data_directory, fetch, find, load_kos, local
from bnpstream.datasets.catalogue import CORPORA, Corpus, CorpusFile
from commands import run, run_json
from file_server import serving

DOCWORD, VOCAB = "docword.kos.txt.gz", "vocab.kos.txt"
HEADER = (15_000, 50, 150_000)


def make_files():
    """Return a docword file that is packed, with ten words a document, and its vocabulary."""
    rng = np.random.default_rng((8, 1))
    words = np.sort(rng.random(HEADER[:2]).argsort(axis=1)[:, :10], axis=1).tolist()
    lines = [f"{i + 1} {j + 1} {1 + (i * j) % 7}\n" for i, row in enumerate(words) for j in row]
    text = "\n".join(map(str, HEADER)) + "\n" + "".join(lines)
    vocabulary = "".join(f"word{j}\n" for j in range(HEADER[1]))
    return {DOCWORD: gzip.compress(text.encode(), mtime=0), VOCAB: vocabulary.encode()}


FILES = make_files()
WHOLE = FILES[DOCWORD]
HALF = len(WHOLE) // 2


def other_file(size=None):
    return np.random.default_rng((8, 2)).bytes(size or len(WHOLE))


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """Return a data directory that is empty, below the user's cache, and outside of a checkout."""
    monkeypatch.delenv("BNPSTREAM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(local, "_PROJECT_ROOT", tmp_path / "no-checkout")
    return tmp_path / "cache" / "bnpstream"


@pytest.fixture
def known(monkeypatch):
    """Let "kos" be the small corpus of this module, with hashes."""
    learn(monkeypatch, {name: hashlib.sha256(body).hexdigest() for name, body in FILES.items()})


@pytest.fixture
def unknown(monkeypatch):
    """Let "kos" be the small corpus of this module, without hashes."""
    learn(monkeypatch, {})


def learn(monkeypatch, hashes):
    files = (
        CorpusFile(DOCWORD, hashes.get(DOCWORD), HEADER, HEADER[2] + 3),
        CorpusFile(VOCAB, hashes.get(VOCAB), n_lines=HEADER[1]),
    )
    monkeypatch.setitem(CORPORA, "kos", Corpus("a small one", 0.1, files, origin=None))


def assert_complete(folder):
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES


def interrupt(served, at=HALF):
    """Let a download break off."""
    served.drop_after = at
    with pytest.raises(FetchError, match="broke"):
        fetch("kos", base_url=served.url)
    served.drop_after = None
    served.requests.clear()
    served.sent = 0


def ask(served):
    """Fetch again; return what the server was asked for of the docword file, and the result."""
    fetched = fetch("kos", base_url=served.url)
    assert_complete(fetched.folder)
    return [request[1:] for request in served.requests if request[0] == DOCWORD], fetched.files[0]


# Where data live


def test_the_data_directory_is_that_of_find(data, tmp_path, monkeypatch):
    assert data_directory() == data
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert data_directory() == tmp_path / "home" / ".cache" / "bnpstream"
    (tmp_path / "shared" / "data").mkdir(parents=True)
    assert data_directory() == tmp_path / "shared" / "data"
    monkeypatch.setenv("BNPSTREAM_DATA", str(tmp_path / "mine"))
    assert data_directory() == tmp_path / "mine"
    with pytest.raises(FileNotFoundError, match=r"bnpstream datasets fetch kos$"):
        find("kos")
    with pytest.raises(FileNotFoundError, match=r"directory that holds '20news'$"):
        find("20news")


@pytest.mark.usefixtures("known")
def test_what_was_fetched_is_found(data):
    with serving(files=FILES) as served:
        fetched = fetch("kos", base_url=served.url.rstrip("/"))
    assert fetched.folder == find("kos") == data / "kos"
    assert_complete(fetched.folder)
    corpus = load_kos()
    assert corpus.counts.shape == HEADER[:2]
    assert corpus.counts.nnz == HEADER[2]
    for file in fetched.files:
        assert file.sha256 == hashlib.sha256(FILES[file.path.name]).hexdigest()
        assert (file.n_bytes, file.hash_known) == (len(FILES[file.path.name]), True)
        assert file.resumed_from == 0
        assert file.path.stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask():
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_the_real_corpus_has_the_known_hashes(data, monkeypatch):
    monkeypatch.undo()
    try:
        files = {name: (find("kos") / name).read_bytes() for name in (DOCWORD, VOCAB)}
    except FileNotFoundError as error:
        pytest.skip(str(error))
    with serving(files=files) as served:
        fetched = fetch("kos", to=data, base_url=served.url)
    assert all(file.hash_known for file in fetched.files)


# Interrupted downloads


@pytest.mark.usefixtures("known")
def test_a_download_goes_on_where_it_broke_off(data):
    with serving(files=FILES) as served:
        served.drop_after = HALF
        message = f"{served.url}{DOCWORD}: the connection broke after {HALF:,} of {len(WHOLE):,} "
        with pytest.raises(FetchError, match=re.escape(message)):
            fetch("kos", base_url=served.url)
        assert (data / "kos" / f"{DOCWORD}.part").read_bytes() == WHOLE[:HALF]
        assert not (data / "kos" / DOCWORD).exists()
        served.drop_after, served.sent = None, 0
        served.requests.clear()
        asked, file = ask(served)
    assert asked == [(f"bytes={HALF}-", '"1"')]
    assert served.sent == len(WHOLE) - HALF + len(FILES[VOCAB])
    assert file.resumed_from == HALF


@pytest.mark.usefixtures("known")
def test_a_server_that_sends_no_parts_sends_all_again():
    with serving(files=FILES, ranges=False) as served:
        interrupt(served)
        asked, file = ask(served)
    assert asked == [(f"bytes={HALF}-", '"1"')]
    assert file.resumed_from == 0


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("old", "change", "n_requests"),
    [
        # It sees by If-Range that the part is one of another file, and sends all of its own.
        ({}, {"etag": '"2"'}, 1),
        ({"etag": None, "last_modified": "Mon"}, {"last_modified": "Tue"}, 1),
        # It knows no If-Range: its answer has another mark, or another size.
        ({"if_range": False}, {"etag": '"2"'}, 2),
        ({"etag": None, "size": len(WHOLE) + 1}, {}, 2),
        # The part is larger than the file has become.
        ({"etag": None, "size": 3 * len(WHOLE), "at": 2 * len(WHOLE)}, {}, 2),
    ],
)
def test_a_file_that_has_changed_is_fetched_from_its_beginning(old, change, n_requests):
    old = dict(old)
    size, at = old.pop("size", len(WHOLE)), old.pop("at", HALF)
    with serving(files={**FILES, DOCWORD: other_file(size)}, **old) as served:
        interrupt(served, at)
        served.files[DOCWORD] = WHOLE
        for name, value in change.items():
            setattr(served, name, value)
        asked, file = ask(served)
    assert asked[0][0] == f"bytes={at}-"
    assert [request[0] for request in asked[1:]] == [None] * (n_requests - 1)
    assert file.resumed_from == 0


@pytest.mark.usefixtures("known")
def test_a_weak_mark_is_not_relied_upon():
    with serving(files=FILES, etag='W/"1"') as served:
        interrupt(served)
        asked, file = ask(served)
    assert asked == [(f"bytes={HALF}-", None)]
    assert file.resumed_from == HALF


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("origin", [None, "", "[]", '{"url": 1}'])
def test_a_part_of_nobody_knows_what_is_thrown_away(data, origin):
    with serving(files=FILES) as served:
        interrupt(served)
        path = data / "kos" / f"{DOCWORD}.part.json"
        path.unlink() if origin is None else path.write_text(origin)
        asked, _ = ask(served)
    assert asked == [(None, None)]


@pytest.mark.usefixtures("known")
def test_a_part_from_elsewhere_is_thrown_away():
    with serving(files={**FILES, DOCWORD: other_file()}) as elsewhere:
        interrupt(elsewhere)
    with serving(files=FILES) as served:
        asked, _ = ask(served)
    assert asked == [(None, None)]


@pytest.mark.usefixtures("known")
def test_a_part_that_is_whole_is_checked_and_named(data):
    with serving(files=FILES) as served:
        interrupt(served)
        (data / "kos" / f"{DOCWORD}.part").write_bytes(WHOLE)
        asked, file = ask(served)
    assert asked == []
    assert file.resumed_from == len(WHOLE)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_is_ended_leaves_what_it_had(data, number):
    command = [sys.executable, "-m", "bnpstream", "datasets", "fetch", "kos", "--from"]
    part = data / "kos" / f"{DOCWORD}.part"
    with serving(files=FILES, stall_after=HALF) as served:
        with subprocess.Popen(
            [*command, served.url, "--to", data], stderr=subprocess.PIPE, text=True
        ) as process:
            assert served.stalled.wait(60)
            while part.stat().st_size == 0:
                assert process.poll() is None
            process.send_signal(number)
            _, complaint = process.communicate(timeout=300)
        if number == signal.SIGINT:
            assert process.returncode == 130
            assert complaint.startswith("stopped; run the same command again")
        have = part.stat().st_size
        assert 0 < have <= HALF
        served.stall_after = None
        served.requests.clear()
        asked, _ = ask(served)  # and nothing else is left in the folder
    assert asked == [(f"bytes={have}-", '"1"')]


@pytest.mark.usefixtures("known")
def test_two_processes_do_not_fetch_one_file(data):
    (data / "kos").mkdir(parents=True)
    with (data / "kos" / f"{DOCWORD}.part").open("ab") as file, serving(files=FILES) as served:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(FetchError, match=r"part: another process is fetching this file: wait"):
            fetch("kos", base_url=served.url)
        assert served.requests == []


@pytest.mark.usefixtures("known")
def test_progress_is_told_from_where_it_goes_on():
    with serving(files=FILES) as served:
        interrupt(served)
        steps = []
        fetch("kos", base_url=served.url, progress=steps.append)
    of_docword = [step for step in steps if step.file == DOCWORD]
    done = [step.done for step in of_docword if step.stage == "downloading"]
    assert done[0] == HALF
    assert done[-1] == len(WHOLE)
    assert done == sorted(done)
    assert {step.total for step in of_docword} == {len(WHOLE)}
    assert of_docword[-1].stage == "checking"


# Files that are there already


@pytest.mark.usefixtures("known")
def test_what_is_there_is_checked_and_not_downloaded_again(data):
    with serving(files=FILES) as served:
        fetch("kos", base_url=served.url)
        served.requests.clear()
        assert [file.resumed_from for file in fetch("kos", base_url=served.url).files] == [None] * 2
        assert served.requests == []
        (data / "kos" / VOCAB).write_bytes(b"mine\n")
        message = rf"{VOCAB}: already exists, but its sha256 is \w+, expected \w+: move it away"
        with pytest.raises(FetchError, match=message):
            fetch("kos", base_url=served.url)
        assert (data / "kos" / VOCAB).read_bytes() == b"mine\n"
        assert served.requests == []


# What goes wrong


@pytest.mark.usefixtures("known")
def test_a_wrong_hash_is_named_and_nothing_is_kept(data):
    wrong = other_file()
    with serving(files={**FILES, DOCWORD: wrong}) as served, pytest.raises(FetchError) as found:
        fetch("kos", base_url=served.url)
    hashes = [hashlib.sha256(body).hexdigest() for body in (wrong, WHOLE)]
    assert str(found.value).startswith(
        f"{DOCWORD} from {served.url}{DOCWORD}: its sha256 is {hashes[0]}, expected {hashes[1]}: "
        "what was downloaded is deleted; fetch again; if that fails too, give the address"
    )
    assert not (data / "kos").exists()


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, r"docword\.kos\.txt\.gz: the server has no such file \(404\): give the address of"),
        (503, r"docword\.kos\.txt\.gz: the server answers 503 Service Unavailable: try again late"),
    ],
)
def test_a_server_that_refuses(data, status, message):
    with serving(files=FILES) as served:
        served.status = status
        with pytest.raises(FetchError, match=message):
            fetch("kos", base_url=served.url)
        assert not (data / "kos").exists()
        served.status = 200
        interrupt(served)
        served.status = status
        with pytest.raises(FetchError, match=message):
            fetch("kos", base_url=served.url)
        served.status = 200
        served.requests.clear()
        assert ask(served)[0][0][0] == f"bytes={HALF}-"


@pytest.mark.usefixtures("known")
def test_a_port_where_nobody_listens(data):
    with socket.socket() as taken:  # nobody else gets it, and it does not listen
        taken.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{taken.getsockname()[1]}"
        message = f"http://{host}/{DOCWORD}: {host} refuses the connection: check the network and"
        with pytest.raises(FetchError, match=re.escape(message)):
            fetch("kos", base_url=f"http://{host}")
    assert not (data / "kos").exists()


@pytest.mark.usefixtures("known")
def test_a_host_that_is_not_known(monkeypatch):
    # As without a network; a real question would reach for it.
    def resolve(*arguments, **more):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(FetchError, match=r"unknown host no\.such\.host, or no network: check"):
        fetch("kos", base_url="http://no.such.host/")


@pytest.mark.usefixtures("known")
def test_an_address_that_is_none():
    with pytest.raises(FetchError, match=r"no/docword.*No scheme supplied.*--from"):
        fetch("kos", base_url="no")


@pytest.mark.usefixtures("known")
def test_directories_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    message = r"file/kos: there is a file where a directory is needed: give another.*--to"
    with pytest.raises(FetchError, match=message):
        fetch("kos", to=tmp_path / "file")
    with pytest.raises(FetchError, match=r"kos: cannot be written to.*--to"):
        fetch("kos", to="/sys")


def test_requests_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)
    with pytest.raises(
        ImportError, match=r"requests, which is missing: pip install 'bnpstream\[fe"
    ):
        fetch("kos")


def test_nothing_is_imported_before_it_is_needed():
    code = (
        "import sys, bnpstream.datasets, bnpstream.cli, bnpstream.cli.datasets;"
        "print([m for m in ('requests', 'urllib3') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# Files whose hash is not known


@pytest.mark.usefixtures("unknown")
def test_without_a_hash_contents_are_checked(data):
    with serving(files=FILES) as served:
        fetched = fetch("kos", base_url=served.url)
    assert [file.hash_known for file in fetched.files] == [False, False]
    assert fetched.files[0].sha256 == hashlib.sha256(WHOLE).hexdigest()
    assert_complete(data / "kos")


def packed(text):
    return gzip.compress(text, mtime=0)


TEXT = gzip.decompress(WHOLE)


@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        (DOCWORD, WHOLE[:-1], r"its gzip data are damaged or end early \("),
        (DOCWORD, WHOLE[:HALF] + bytes(8) + WHOLE[HALF + 8 :], "its gzip data are damaged or"),
        (DOCWORD, WHOLE[:10] + b"\xff" + WHOLE[11:], r"end early \(Error -3 while decompressing"),
        (DOCWORD, b"<html>", "its gzip data are damaged or end early"),
        (DOCWORD, packed(b"1" + TEXT), r"NNZ\) is '115000 50 150000', expected '15000"),
        (DOCWORD, packed(b""), r"its header \(D, W, NNZ\) is '  ', expected"),
        (DOCWORD, packed(TEXT + b"1 1 1\n"), "it has 150,004 lines, expected 150,003"),
        (DOCWORD, packed(TEXT + b"1 1 1"), "it has 150,004 lines, expected 150,003"),
        (VOCAB, b"word\n" * 49, "it has 49 lines, expected 50"),
    ],
)
def test_without_a_hash_wrong_contents_are_found(data, name, body, message):
    with serving(files={**FILES, name: body}) as served, pytest.raises(FetchError, match=message):
        fetch("kos", base_url=served.url)
    assert not (data / "kos" / name).exists()
    assert not list(data.glob("kos/*.part*"))


@pytest.mark.usefixtures("unknown")
def test_a_last_line_needs_no_end():
    files = {**FILES, DOCWORD: packed(TEXT.rstrip()), VOCAB: FILES[VOCAB].rstrip()}
    with serving(files=files) as served:
        fetch("kos", base_url=served.url)


@pytest.mark.usefixtures("known")
def test_files_stay_packed_whatever_the_server_calls_them(data):
    with serving(files=FILES, encoding="gzip") as served:
        fetch("kos", base_url=served.url)
    assert_complete(data / "kos")


# The command line


@pytest.mark.usefixtures("known")
def test_the_commands(data, tmp_path):
    kos = run_json("datasets", "list")[0]
    assert (kos["name"], kos["folder"], kos["get"]) == ("kos", None, "bnpstream datasets fetch kos")
    assert "not found; bnpstream datasets fetch kos" in run("datasets", "list")
    with serving(files=FILES) as served:
        interrupt(served)
        said = run("datasets", "fetch", "kos", "--from", served.url)
        assert f"{DOCWORD}: downloaded, continuing after {HALF:,} bytes" in said
        assert f"{VOCAB}: downloaded, 0.0 MB\n  verified: sha256 matches" in said
        assert "BNPSTREAM_DATA" not in said
        assert run_json("datasets", "list")[0]["folder"] == str(data / "kos")
        assert str(data / "kos") in run("datasets", "list").replace("\n", "").replace(" ", "")
        found = run_json("datasets", "fetch", "kos")
        assert [file["resumed_from"] for file in found["files"]] == [None, None]
        assert found["set"] is None
        assert "already there" in run("datasets", "fetch", "kos", "--to", data)
        mine = tmp_path / "my data"
        said = run("datasets", "fetch", "kos", "--from", served.url, "--to", mine)
        assert f"to use it: export BNPSTREAM_DATA='{mine}'\n" in said
        found = run_json("datasets", "fetch", "kos", "--to", mine)
        assert found["set"] == {"BNPSTREAM_DATA": str(mine)}
        served.status = 404
        said = run("datasets", "fetch", "kos", "--from", served.url, "--to", tmp_path, code=1)
        assert said.startswith(f"error: {served.url}{DOCWORD}: the server has no such file (404)")


@pytest.mark.usefixtures("unknown")
def test_the_command_says_what_could_not_be_checked():
    with serving(files=FILES) as served:
        said = run("datasets", "fetch", "kos", "--from", served.url)
    assert said.count("no published sha256 to compare with") == 2
    assert f"sha256 {hashlib.sha256(WHOLE).hexdigest()}\n" in said


def test_the_command_names_a_corpus_that_it_does_not_know():
    said = run("datasets", "fetch", "20news", code=1)
    assert said == "error: name is '20news': give 'kos' or 'nytimes'\n"
