"""SCRAM-SHA-256: both halves against the standard's example, and what either must refuse."""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Callable
from contextlib import suppress

import pytest
import trustme

from broker import errors
from broker.properties import Secret
from broker.security.mechanisms import PLAIN, Channel, Proved
from broker.security.principal import Principal
from broker.security.scram import ScramClient, make_credential, serve_scram
from broker.security.users import SCRAM, SCRAM_PLUS, Credential, Users
from tests.support.work import calls_of

PENCIL = Secret("pencil")
ALICE = make_credential(PENCIL, 4096)


def users_of(**credentials: Credential) -> Users:
    users = Users()
    users.use(credentials, b"m" * 32)
    return users


USERS = users_of(alice=ALICE)


def run(
    client: ScramClient,
    *,
    channel: Channel = PLAIN,
    name: str = SCRAM,
    users: Users = USERS,
    change: Callable[[int, str], str] = lambda _step, text: text,
) -> tuple[list[str], Proved]:
    """Run an exchange; `change` may change the client's messages 0 and 1, the broker's 2 and 3."""
    client_half, server_half = client.exchange(channel), serve_scram(users, channel, name)
    next(server_half)
    sent = change(0, next(client_half).decode())
    first = change(2, server_half.send(sent.encode()).decode())
    final = change(1, client_half.send(first.encode()).decode())
    with pytest.raises(StopIteration) as end:
        server_half.send(final.encode())
    proved: Proved = end.value.value
    signature = change(3, proved.data.decode())
    with pytest.raises(StopIteration):
        client_half.send(signature.encode())
    return [sent, first, final, signature], proved


def test_exchange_when_it_is_the_standards_example_then_each_message_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nonces = iter(["%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", "rOprNGfwEbeRWgbNEkqO"])  # the broker begins
    monkeypatch.setattr("scramp.core.token_hex", lambda: next(nonces))
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    monkeypatch.setattr("broker.security.scram.secrets.token_bytes", lambda _: salt)
    credential = make_credential(PENCIL, 4096)

    messages, proved = run(ScramClient("user", PENCIL), users=users_of(user=credential))

    both = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert messages == [
        "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        f"r={both},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        f"c=biws,r={both},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ]
    assert proved.principal == Principal("User", "user")


def of_step(step: int, change: Callable[[str], str]) -> Callable[[int, str], str]:
    return lambda at, text: change(text) if at == step else text


def cut_broker_nonce(final: str) -> str:
    binding, nonce, proof = final.split(",", 2)
    return f"{binding},{nonce[:66]},{proof}"  # `r=` and the client's 64 characters


@pytest.mark.parametrize(
    "change",
    [
        of_step(0, lambda text: text.replace("alice", "")),
        of_step(0, lambda text: text.replace("alice", "al\0ice")),
        of_step(0, lambda text: text.replace("n=alice", "m=1,n=alice")),
        of_step(0, lambda text: text.replace("n,,", "n,a=bob,")),
        of_step(0, lambda text: text.replace("n,,", "p=tls-unique,,")),
        of_step(0, lambda _text: ""),
        of_step(1, cut_broker_nonce),
        of_step(1, lambda text: text.replace("r=", "r=0")),
        of_step(1, lambda text: text.replace("c=biws", "c=eSws")),
        of_step(1, lambda text: f"{text},m=1"),
        of_step(1, lambda text: text[: text.index("p=")] + "p=AAAA"),
    ],
)
def test_broker_when_the_clients_message_is_not_as_it_must_be_then_fails_without_the_cause(
    change: Callable[[int, str], str],
) -> None:
    with pytest.raises(errors.AuthenticationFailedError) as failure:
        run(ScramClient("alice", PENCIL), change=change)

    assert str(failure.value) == "the user or the password is wrong"


@pytest.mark.parametrize(
    ("user", "password"),
    [("alice", "pen"), ("bob", "pencil"), ("a=,b", "pencil"), ("b" * 900, "pencil")],
)
def test_broker_when_user_or_password_is_wrong_then_fails_at_the_last_step(
    user: str, password: str
) -> None:
    steps = []

    def note(step: int, text: str) -> str:
        steps.append(step)
        return text

    with pytest.raises(errors.AuthenticationFailedError, match="the user or the password is wrong"):
        run(ScramClient(user, Secret(password)), change=note)

    assert steps == [0, 2, 1]


def test_broker_when_a_login_fails_then_its_work_does_not_tell_whether_there_is_the_user() -> None:
    users = users_of(alice=ALICE, carol=ALICE)
    users.use({"alice": ALICE}, b"m" * 32)  # carol is removed

    def work(user: str, password: Secret = PENCIL) -> tuple[int, int]:
        client, server = ScramClient(user, password).exchange(PLAIN), serve_scram(users, PLAIN)
        next(server)
        opening = next(client)
        answers: list[bytes] = []
        first = calls_of(lambda: answers.append(server.send(opening)))
        final = client.send(answers[0])

        def refuse() -> None:
            with suppress(errors.AuthenticationFailedError):
                server.send(final)
                pytest.fail("it was taken")

        return first, calls_of(refuse)

    wrong = work("alice", Secret("pen"))
    assert {work(user) for user in ("bobby", "carol", "mario")} == {wrong}


def test_broker_when_the_name_has_another_unicode_form_then_knows_the_user() -> None:
    _, proved = run(ScramClient("\uff41lice\u00ad", PENCIL))  # a wide a, and a soft hyphen

    assert proved.principal == Principal("User", "alice")


def test_mock_when_asked_twice_then_is_the_same_salt_and_one_of_the_counts_of_real_users() -> None:
    made = [USERS.credential(f"user-{number}") for number in range(40)]
    again = [USERS.credential(f"user-{number}") for number in range(40)]

    assert [(one.salt, one.iterations) for one in made] == [
        (one.salt, one.iterations) for one in again
    ]
    assert {one.iterations for one in made} == {16_384, 100_000}
    assert {len(one.salt) for one in made} == {len(ALICE.salt)}


@pytest.mark.parametrize(
    ("step", "change"),
    [
        (2, lambda text: text.replace("i=4096", "i=1")),
        (2, lambda text: text.replace("i=4096", "i=2147483647")),
        (2, lambda text: text.replace("i=4096", "i=1000001")),
        (2, lambda text: text.replace("r=", "r=0")),
        (2, lambda _text: "e=other-error"),
        (2, lambda _text: "\udcff"),
        (3, lambda _text: "v=AAAA"),
        (3, lambda _text: ""),
    ],
)
def test_client_when_the_broker_is_another_then_sends_nothing_more(
    step: int, change: Callable[[str], str]
) -> None:
    client = ScramClient("alice", PENCIL).exchange(PLAIN)
    server = serve_scram(USERS, PLAIN)
    next(server)
    answer = server.send(next(client)).decode()
    if step == 3:
        with pytest.raises(StopIteration) as end:
            server.send(client.send(answer.encode()))
        answer = end.value.value.data.decode()

    with pytest.raises(errors.AuthenticationFailedError, match="nothing else was sent"):
        client.send(change(answer).encode(errors="surrogateescape"))


def test_exchange_when_bound_to_the_certificate_then_fails_for_another_one() -> None:
    ca = trustme.CA()
    here, elsewhere = (
        Channel(ssl.PEM_cert_to_DER_cert(ca.issue_cert(name).cert_chain_pems[0].bytes().decode()))
        for name in ("here", "elsewhere")
    )
    run(ScramClient("alice", PENCIL, SCRAM_PLUS), channel=here, name=SCRAM_PLUS)
    client = ScramClient("alice", PENCIL, SCRAM_PLUS).exchange(elsewhere)
    server = serve_scram(USERS, here, SCRAM_PLUS)
    next(server)

    with pytest.raises(errors.AuthenticationFailedError, match="is wrong"):
        server.send(client.send(server.send(next(client))))
    with pytest.raises(errors.AuthenticationFailedError, match="is wrong"):
        run(
            ScramClient("alice", PENCIL),
            channel=here,
            change=of_step(0, lambda text: text.replace("n,,", "y,,")),
        )


def test_credential_when_kept_as_text_then_is_kafkas_and_comes_back() -> None:
    text = ALICE.encode()

    assert re.fullmatch(r"salt=\S+,stored_key=\S{44},server_key=\S{44},iterations=4096", text)
    assert Credential.decode(text) == ALICE


@pytest.mark.parametrize("text", ["", "salt=AAAA", "salt=?,stored_key=,server_key=,iterations=1"])
def test_credential_when_malformed_then_the_error_does_not_show_it(text: str) -> None:
    with pytest.raises(errors.CoordinationError) as failure:
        Credential.decode(text)

    assert text == "" or text not in str(failure.value)
