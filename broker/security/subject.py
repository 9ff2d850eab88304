"""The user that a client's certificate names: its subject as text, and rules that map it.

The text is that of RFC 2253, as Kafka's principals have it: `CN=alice,OU=logs,O=Example`, the
reverse of the order in the certificate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from broker.errors import ConfigError, InvalidPatternError
from broker.patterns import Pattern

Subject = Iterable[Iterable[tuple[str, str]]]
"""As `ssl` gives it: relative names, each of one or several attributes."""
_SHORT = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_RULE = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)", re.DOTALL)


def subject_text(subject: Subject) -> str:
    """Return a certificate's subject by RFC 2253; `,`, `+` and the like are escaped."""
    names = [
        "+".join(f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in relative)
        for relative in subject
    ]
    return ",".join(reversed(names))


def _escaped(value: str) -> str:
    text = re.sub(r'([,+"\\<>;])', r"\\\1", value)
    text = re.sub(
        r"[\x00-\x1f\x7f]", lambda found: "".join(f"\\{one:02X}" for one in found[0].encode()), text
    )
    if text.startswith((" ", "#")):
        text = "\\" + text
    return text[:-1] + "\\ " if text.endswith(" ") and len(value) > 1 else text


class _Rule(NamedTuple):
    pattern: Pattern
    template: str  # as `re` has it
    case: str  # L, U or nothing


class PrincipalRules:
    """`ssl.principal.mapping.rules`: the first rule whose pattern is the whole subject decides.

    `RULE:PATTERN/REPLACEMENT/[LU]`, with `$1` for a group, or `DEFAULT`, the subject itself;
    commas separate them, a slash in a pattern is escaped. `ConfigError` if it cannot be read.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[_Rule | None] = []
        rest = text.strip() or "DEFAULT"
        while rest:
            if rest.startswith("DEFAULT"):
                self._rules.append(None)
                rest = rest[len("DEFAULT") :]
            elif found := _RULE.match(rest):
                self._rules.append(_parse_rule(*found.groups()))
                rest = rest[found.end() :]
            else:
                raise _invalid(rest)
            rest = rest.lstrip()
            if rest and not rest.startswith(","):
                raise _invalid(rest)
            rest = rest[1:].lstrip()

    def user(self, subject: str) -> str | None:
        """Return the user that a subject names; None if no rule matches."""
        for rule in self._rules:
            if rule is None:
                return subject
            found = rule.pattern.fullmatch(subject)
            if found is None:
                continue
            name = found.expand(rule.template)
            return {"L": name.lower(), "U": name.upper()}.get(rule.case, name) or None
        return None


def _parse_rule(pattern: str, replacement: str, case: str) -> _Rule:
    plain = replacement.replace("\\/", "/").replace("\\", "\\\\")
    template = re.sub(r"\$(\d)", r"\\g<\1>", plain)
    try:
        compiled = Pattern(pattern)
    except InvalidPatternError as error:
        raise ConfigError(f"ssl.principal.mapping.rules: {error}") from error
    for group in re.findall(r"\$(\d)", plain):
        if int(group) > compiled.group_count:
            raise ConfigError(f"ssl.principal.mapping.rules: '{pattern}' has no group {group}")
    return _Rule(compiled, template, case)


def _invalid(rest: str) -> ConfigError:
    return ConfigError(
        f"ssl.principal.mapping.rules: '{rest[:60]}' is neither RULE:PATTERN/REPLACEMENT/[LU] nor "
        "DEFAULT"
    )
