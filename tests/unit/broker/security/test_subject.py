from __future__ import annotations

import pytest

from broker.errors import ConfigError
from broker.security.subject import PrincipalRules, subject_text


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ((), ""),
        (((("commonName", "a"),),), "CN=a"),
        (
            (
                (("countryName", "DE"),),
                (("organizationName", "Example"),),
                (("organizationalUnitName", "logs"),),
                (("commonName", "alice"),),
            ),
            "CN=alice,OU=logs,O=Example,C=DE",
        ),
        (((("commonName", 'a,b+c"d\\e<f>g;h'),),), r"CN=a\,b\+c\"d\\e\<f\>g\;h"),
        (((("commonName", "a\0admin"),),), r"CN=a\00admin"),
        (((("commonName", "a\nb"),),), r"CN=a\0Ab"),
        (((("commonName", " a "),),), r"CN=\ a\ "),
        (((("commonName", " "),),), r"CN=\ "),
        (((("commonName", "#a"),),), r"CN=\#a"),
        (((("commonName", "Zoë"),),), "CN=Zoë"),
        (((("commonName", "a=b"),),), "CN=a=b"),
        (((("commonName", "a"), ("userId", "7")),), "CN=a+UID=7"),
        (((("emailAddress", "a@b"),),), "emailAddress=a@b"),
    ],
)
def test_subject_when_written_then_is_as_rfc_2253_has_it(
    subject: tuple[tuple[tuple[str, str], ...], ...], text: str
) -> None:
    assert subject_text(subject) == text


SUBJECT = "CN=Alice,OU=logs,O=Example"


@pytest.mark.parametrize(
    ("rules", "user"),
    [
        ("", SUBJECT),
        ("DEFAULT", SUBJECT),
        (r"RULE:^CN=(.*?),.*$/$1/", "Alice"),
        (r"RULE:^CN=(.*?),.*$/$1/L", "alice"),
        (r"RULE:^CN=(.*?),.*$/$1/U", "ALICE"),
        (r"RULE:^CN=(.*?),OU=(.*?),.*$/$2-$1/", "logs-Alice"),
        (r"RULE:^CN=Bob.*$/bob/, RULE:^CN=(\w+),.*$/$1/L, DEFAULT", "alice"),
        (r"RULE:^CN=Bob.*$/bob/, DEFAULT", SUBJECT),
        (r"RULE:^CN=Bob.*$/bob/", None),
        (r"RULE:CN=Alice/part/", None),  # the pattern must be the whole subject
        (r"RULE:.*\/.*/slash/,RULE:.*/\g<0>/", r"\g<0>"),
    ],
)
def test_rules_when_applied_then_the_first_that_matches_names_the_user(
    rules: str, user: str | None
) -> None:
    assert PrincipalRules(rules).user(SUBJECT) == user


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ("RULE:a", "'RULE:a' is neither"),
        ("DEFAULT DEFAULT", "'DEFAULT' is neither"),
        ("RULE:(/x/", "missing \\)"),
        ("RULE:a/$1/", "'a' has no group 1"),
        ("default", "'default' is neither"),
    ],
)
def test_rules_when_they_cannot_be_read_then_the_error_names_the_part(
    rules: str, sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        PrincipalRules(rules)
