from __future__ import annotations

from pathlib import Path

from pylogctl.cli.environment import Environment, SharedOptions, Streams
from pylogctl.mirror.run import consumer_config


def test_consumer_of_a_mirror_reaches_zookeeper_as_the_options_of_its_source_say(
    tmp_path: Path,
) -> None:
    file = tmp_path / "zk.properties"
    file.write_text("zookeeper.ssl.ca.location=ca.pem\n")
    options = SharedOptions(
        zookeeper="zk1:2281", zk_credential="/zk.secret", zk_tls_config=str(file)
    )

    config = consumer_config(Environment(Streams(None, None, None), {}, options), "copies")

    assert (config.group, config.zookeeper) == ("copies", "zk1:2281")
    assert config.zk_credential_file == Path("/zk.secret")
    assert (config.zk_tls, config.zk_tls_ca) == (True, tmp_path / "ca.pem")


def test_consumer_of_a_mirror_that_begins_at_the_end_reads_what_retention_has_left() -> None:
    options = SharedOptions(zookeeper="zk1:2181", properties={"autooffset.reset": "largest"})

    config = consumer_config(Environment(Streams(None, None, None), {}, options), "copies")

    assert (config.offset_reset, config.out_of_range_reset) == ("largest", "smallest")
