"""A process between two brokers is killed at any moment: the same bits, one answer for a key."""

import pytest
from processes import check_kills


@pytest.mark.parametrize("n_lanes", [1, 4])
def test_kafka(tmp_path, n_lanes):
    pytest.importorskip("confluent_kafka", reason="no Kafka client: pip install 'bnpstream[kafka]'")
    from kafka_cluster import cluster

    with cluster() as own:
        sent = check_kills(own, tmp_path, "heard", 4, seed=n_lanes, n_lanes=n_lanes)
    assert sent > 595  # some were repeated


@pytest.mark.parametrize("scheme", ["redis", "nats", "postgresql"])
def test_servers(tmp_path, scheme):
    from servers import running

    folder = tmp_path / "server"
    folder.mkdir()
    with running(scheme, folder) as own:
        check_kills(own, tmp_path, "heard", 3, seed=1)
