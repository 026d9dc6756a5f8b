import socket
import subprocess
import sys
import time

import pytest

from bnpstream.distributed import clients, connect


def test_workers_on_this_machine():
    with connect("local:2") as client:
        assert list(client.nthreads().values()) == [1, 1]
        assert client.dashboard_link.startswith("http://127.0.0.1:")
        assert client.submit(sum, [1, 2]).result() == 3
    assert client.status == "closed"


def test_a_cluster_that_runs(client):
    address = client.scheduler.address
    with connect(address) as another:
        assert another.submit(sum, [1, 2]).result() == 3
    assert client.submit(sum, [2, 2]).result() == 4


def test_nobody_answers(monkeypatch):
    monkeypatch.setattr(clients, "PATIENCE", 0.5)
    with socket.socket() as taken:  # bound, but it listens to nobody
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        start = time.monotonic()
        message = rf"no Dask scheduler answers at {address}: start one there .* or give local:2"
        with pytest.raises(ConnectionError, match=message), connect(address):
            pass
        assert time.monotonic() - start < 25  # Dask's own patience is 30


@pytest.mark.parametrize("address", ["local", "local:0", "localhost:8786", ""])
def test_no_address(address):
    with pytest.raises(ValueError, match=f'"tcp://HOST:PORT".*got {address!r}'), connect(address):
        pass


def test_without_dask():
    program = "import sys; sys.modules['distributed'] = None; import bnpstream.distributed"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr
    assert "pip install 'bnpstream[dask]'" in done.stderr


def test_workers_that_do_not_start_are_a_message(monkeypatch):
    def fails(**_):
        raise RuntimeError("Cluster failed to start: no space left")

    monkeypatch.setattr("bnpstream.distributed.clients.LocalCluster", fails)
    with pytest.raises(ConnectionError, match=r"could not start .* no space"), connect("local:2"):
        pass
