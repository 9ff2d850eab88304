from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from broker.errors import ConfigError
from broker.producer.config import ProducerConfig
from broker.properties import Secret
from broker.security.client_security import ClientSecurity, TlsFiles


def test_properties_have_the_names_that_clients_of_kafka_know() -> None:
    config = ProducerConfig.from_properties(
        {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": "/ca.pem",
            "sasl.mechanism": "SCRAM-SHA-256-PLUS",
            "sasl.username": "alice",
            "sasl.password": "secret of alice",
        }
    )
    assert config.has_tls
    assert config.tls_files == TlsFiles(Path("/ca.pem"), None, None)
    assert (config.user, config.password.reveal()) == ("alice", "secret of alice")
    assert config.mechanism is not None
    assert config.mechanism.name == "SCRAM-SHA-256-PLUS"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"ssl.ca.location": "/ca"}, r"ssl\.\* has no effect with security.protocol=PLAINTEXT"),
        ({"sasl.username": "a", "security.protocol": "SSL"}, "sasl.username has no effect with"),
        ({"security.protocol": "SASL_SSL"}, "security.protocol=SASL_SSL needs sasl.username"),
        (
            {"security.protocol": "SASL_SSL", "sasl.username": "a"},
            "security.protocol=SASL_SSL needs sasl.password",
        ),
        ({"security.protocol": "SSL", "ssl.key.location": "/k"}, "without ssl.certificate"),
        ({"security.protocol": "TLS"}, "security.protocol is 'TLS'; it must be one of PLAINTEXT"),
        ({"sasl.mechanism": "PLAIN"}, "it must be one of SCRAM-SHA-256"),
        ({"sasl.mechanism": "SCRAM-SHA-256-PLUS"}, "binds to TLS, so not with security.protocol="),
    ],
)
def test_properties_that_contradict_each_other_are_an_error(
    given: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        ClientSecurity.from_properties(given)


def test_password_is_shown_nowhere_and_survives_pickling() -> None:
    security = ClientSecurity.of_files(user="alice", password="hunter2")
    for text in (repr(security), str(security.password), f"{security.password}"):
        assert "hunter2" not in text
        assert "***" in text
    assert pickle.loads(pickle.dumps(security)).password == Secret("hunter2")
