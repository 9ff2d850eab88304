"""Rules: who may do what to which topic, group or to the cluster, as Kafka's authorizer decides it.

A super user and a broker of the cluster may do everything. Of the rules that match, one that denies
wins over all that allow; if none matches, the answer is no.
"""

from __future__ import annotations

import ipaddress
import json
import re
import zlib
from bisect import bisect_right
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import NamedTuple, Self

from broker.errors import ConfigError, CoordinationError
from broker.security.principal import BROKER, USER, Principal
from broker.topic import MAX_TOPIC_NAME_LENGTH

ANY = "*"
NO_VERSION = -1
"""Of rules without a node."""
MAX_BYTES = 900 << 10
"""The longest text of all rules: ZooKeeper's limit of 1 MiB, and some room."""
_MAX_PLAIN_BYTES = 128 << 10  # more are compressed: the embedded ZooKeeper takes 256 kB at a time
_MAX_MEMO = 10_000
_MAX_VIEWS = 1000


class Operation(StrEnum):
    """What a rule is about; `ALL` stands for each of them."""

    READ = "read"
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    ALTER = "alter"
    DESCRIBE = "describe"
    ALL = "all"

    __hash__ = str.__hash__  # that of enums is no built-in, and takes most of the time of an answer


_IMPLIES_DESCRIBE = {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}


class ResourceType(StrEnum):
    """What operations are done to."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"
    SCHEMA = "schema"

    __hash__ = str.__hash__


class Resource(NamedTuple):
    """A topic, a group, a subject of schemas, or the cluster, whose name is empty."""

    type: ResourceType
    name: str = ""

    def __str__(self) -> str:
        return f"{self.type}:{self.name}" if self.name else self.type


CLUSTER = Resource(ResourceType.CLUSTER)


class Rule(NamedTuple):
    """One rule; `resource` names one thing, or all whose names begin so, or all if it is `*`."""

    principal: Principal
    operation: Operation
    resource: Resource
    is_prefix: bool = False
    is_allowed: bool = True
    host: str = ANY
    number: int = 0  # its id, given when it is stored

    @property
    def pattern(self) -> str:
        """Return the resource as it is written in a command."""
        return f"{self.resource}{ANY}" if self.is_prefix else str(self.resource)

    def __str__(self) -> str:
        effect = "allow" if self.is_allowed else "deny"
        host = "" if self.host == ANY else f" from {self.host}"
        return f"{effect} {self.principal} {self.operation} {self.pattern}{host}"

    def is_of(self, principal: Principal) -> bool:
        """Return whether the rule is for a principal, at whatever host."""
        return self.principal == principal or (
            self.principal.kind == principal.kind and self.principal.name == ANY
        )

    def covers(self, operation: Operation) -> bool:
        """Return whether the rule is about an operation; what it allows may imply describe."""
        if self.operation in (operation, Operation.ALL):
            return True
        implied = self.is_allowed and operation is Operation.DESCRIBE
        return implied and self.operation in _IMPLIES_DESCRIBE


class Decision(NamedTuple):
    """An answer, and what it comes from."""

    is_allowed: bool
    rule: Rule | None  # which decided; None if none matched, or none was asked
    lost: tuple[Rule, ...] = ()  # they matched, too
    near: tuple[tuple[Rule, str], ...] = ()
    """If none matched, those that differ in one thing, and in which; `prefix`: it is none."""
    is_super_user: bool = False  # or a broker of the cluster


class _View:
    """The rules for one principal at one host, by what they are on."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._literal: dict[Resource, list[Rule]] = {}
        self._by_prefix: dict[Resource, list[Rule]] = {}
        for rule in rules:
            found = self._by_prefix if rule.is_prefix else self._literal
            found.setdefault(rule.resource, []).append(rule)
        self._of_all = {one.type: rules for one, rules in self._literal.items() if one.name == ANY}
        self._prefixes = sorted(self._by_prefix)
        self._shorter: dict[Resource, Resource | None] = {}  # the next prefix of a prefix
        nested: list[Resource] = []
        for one in self._prefixes:
            while nested and not _begins(one, nested[-1]):
                nested.pop()
            self._shorter[one] = nested[-1] if nested else None
            nested.append(one)

    def on(self, resource: Resource) -> list[Rule]:
        """Return the rules on a resource: by its name, by `*`, and by each prefix of its name."""
        kind, name = resource
        found = [*self._literal[resource]] if resource in self._literal else []
        if name != ANY and kind in self._of_all:
            found += self._of_all[kind]
        # what begins like the name is the last prefix up to it, or a prefix of that one
        at = bisect_right(self._prefixes, resource)
        prefix = self._prefixes[at - 1] if at else None
        while prefix is not None:
            if _begins(resource, prefix):
                found += self._by_prefix[prefix]
            prefix = self._shorter[prefix]
        return found


def _begins(resource: Resource, prefix: Resource) -> bool:
    return resource.type is prefix.type and resource.name.startswith(prefix.name)


class RuleSet:
    """All rules of one version; does not change, so that any thread may ask it."""

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        super_users: Collection[Principal] = (),
        *,
        version: int = NO_VERSION,
    ) -> None:
        self.rules = tuple(rules)
        self.version = version  # of the node
        self.super_users = frozenset(super_users)
        self._by_principal: dict[Principal, list[Rule]] = {}
        for rule in self.rules:
            self._by_principal.setdefault(rule.principal, []).append(rule)
        self._hosts = {rule.host for rule in self.rules}
        self._views: dict[tuple[Principal, str], _View] = {}
        self._memo: dict[tuple[Principal, str, Operation, Resource], bool] = {}

    def is_super_user(self, principal: Principal) -> bool:
        """Return whether a principal may do everything: a super user, or a broker."""
        return principal.kind == BROKER or principal in self.super_users

    def allows(
        self, principal: Principal, host: str, operation: Operation, resource: Resource
    ) -> bool:
        """Return whether a principal at an address (see `host_of`) may do something."""
        if len(resource.name) > MAX_TOPIC_NAME_LENGTH:  # strangers must not fill the memory
            return self._decide(principal, host, operation, resource)
        key = principal, host, operation, resource
        found = self._memo.get(key)
        if found is None:
            if len(self._memo) >= _MAX_MEMO:
                self._memo.clear()
            found = self._memo[key] = self._decide(principal, host, operation, resource)
        return found

    def _decide(
        self, principal: Principal, host: str, operation: Operation, resource: Resource
    ) -> bool:
        if self.is_super_user(principal):
            return True
        rule = self.deciding(principal, host, operation, resource)
        return rule is not None and rule.is_allowed

    def deciding(
        self, principal: Principal, host: str, operation: Operation, resource: Resource
    ) -> Rule | None:
        """Return the rule that decides about whoever is no super user; None if none matches."""
        matching = self._matching(principal, host, operation, resource)
        return min(matching, key=_precedence) if matching else None

    def _matching(
        self, principal: Principal, host: str, operation: Operation, resource: Resource
    ) -> list[Rule]:
        # principals and hosts without rules of their own share a view: strangers add none
        everyone = Principal(principal.kind, ANY)
        key = (
            principal if principal in self._by_principal else everyone,
            host if host in self._hosts else ANY,
        )
        view = self._views.get(key)
        if view is None:
            if len(self._views) >= _MAX_VIEWS:
                self._views.clear()
            own = (self._by_principal.get(one, ()) for one in {*key[:1], everyone})
            found = (rule for rules in own for rule in rules if rule.host in (ANY, host))
            view = self._views[key] = _View(found)
        return [rule for rule in view.on(resource) if rule.covers(operation)]

    def explain(
        self, principal: Principal, host: str, operation: Operation, resource: Resource
    ) -> Decision:
        """Return what `allows` answers, and why."""
        if self.is_super_user(principal):
            return Decision(True, None, is_super_user=True)
        matching = sorted(self._matching(principal, host, operation, resource), key=_precedence)
        if matching:
            return Decision(matching[0].is_allowed, matching[0], tuple(matching[1:]))
        near = []
        for rule in self.rules:
            missed = _misses(rule, principal, host, operation, resource)
            if rule.is_allowed and len(missed) == 1 and missed != ["name"]:
                near.append((rule, missed[0]))
        return Decision(False, None, near=tuple(near))


def _precedence(rule: Rule) -> tuple[bool, int]:
    return rule.is_allowed, rule.number


def _misses(
    rule: Rule, principal: Principal, host: str, operation: Operation, resource: Resource
) -> list[str]:
    """Return in what a rule differs from a question."""
    kind, name = rule.resource
    found = [
        *(() if rule.is_of(principal) else ("user",)),
        *(() if rule.host in (ANY, host) else ("host",)),
        *(() if rule.covers(operation) else ("operation",)),
        *(() if kind is resource.type else ("type",)),
    ]
    is_prefix = resource.name.startswith(name)
    if name not in (resource.name, ANY) and not (rule.is_prefix and is_prefix):
        found.append("prefix" if name and is_prefix else "name")
    return found


def host_of(address: str) -> str:
    """Return an IP address in the one form of rules: IPv4 in IPv6 as IPv4.

    Raises:
        ConfigError: it is none.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        raise ConfigError(
            f"'{address}' is no IP address: rules know no names and no networks, only addresses, "
            "and * for all"
        ) from None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)


def parse_principal(text: str) -> Principal:
    """Return the user of a text such as `User:alice`; `ConfigError` for anything else."""
    kind, colon, name = text.partition(":")
    if kind != USER or not colon or not name:
        raise ConfigError(f"'{text}' is no user: User:NAME is one, as User:alice")
    return Principal(kind, name)


def parse_super_users(text: str) -> frozenset[Principal]:
    """Return the users of the setting `super.users`, split at `;` and newlines."""
    users = set()
    for entry in filter(None, map(str.strip, re.split("[;\n]", text))):
        if re.search(r",\s*User:", entry):
            raise ConfigError(f"super.users: '{entry}' is one name: separate users by ;")
        try:
            user = parse_principal(entry)
        except ConfigError as error:
            raise ConfigError(f"super.users: {error}") from error
        if user.name == ANY:
            raise ConfigError("super.users: 'User:*' would make everybody a super user")
        users.add(user)
    return frozenset(users)


def parse_pattern(text: str) -> tuple[Resource, bool]:
    """Return what a rule is on, and whether that is a prefix: `topic:a`, `topic:a*`, `cluster`.

    Raises:
        ConfigError: it is none of these.
    """
    kind_text, _, name = text.partition(":")
    try:
        kind = ResourceType(kind_text)
    except ValueError:
        kind = None
    if kind is None or bool(name) == (kind is ResourceType.CLUSTER):
        raise ConfigError(
            f"'{text}' is no resource: topic:NAME, group:NAME, schema:SUBJECT and cluster are; "
            "topic:PREFIX* is all topics that begin so"
        )
    is_prefix = name.endswith(ANY) and name != ANY
    name = name[:-1] if is_prefix else name
    if ANY in name and (is_prefix or name != ANY):
        raise ConfigError(f"'{text}': * stands at the end only, for all names that begin so")
    return Resource(kind, name), is_prefix


class StoredRules(NamedTuple):
    """What the node holds: all rules, and the number for the next one."""

    rules: tuple[Rule, ...] = ()
    next_number: int = 1

    def adding(self, rules: Iterable[Rule]) -> Self:
        """Return these with others, which get numbers; one that is there already stays as it is."""
        known = {rule._replace(number=0) for rule in self.rules}
        plain = dict.fromkeys(rule._replace(number=0) for rule in rules)
        new = [rule for rule in plain if rule not in known]
        numbered = [rule._replace(number=self.next_number + at) for at, rule in enumerate(new)]
        return self._replace(
            rules=(*self.rules, *numbered), next_number=self.next_number + len(new)
        )

    def encode(self) -> bytes:
        """Return the node's value; `ConfigError` if it were too long for ZooKeeper."""
        rules = [
            {
                "id": rule.number,
                "principal": str(rule.principal),
                "operation": rule.operation,
                "type": rule.resource.type,
                "name": rule.resource.name,
                **({"pattern": "prefix"} if rule.is_prefix else {}),  # else literal
                **({} if rule.is_allowed else {"effect": "deny"}),  # else allow
                **({} if rule.host == ANY else {"host": rule.host}),
            }
            for rule in self.rules
        ]
        document = {"version": 1, "next": self.next_number, "rules": rules}
        value = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
        if len(value) > MAX_BYTES:
            raise ConfigError(
                f"{len(rules)} rules take {len(value)} bytes: {MAX_BYTES} are possible, as a node "
                "of ZooKeeper holds 1 MiB; use prefixes (topic:PREFIX*), or remove rules"
            )
        return value if len(value) <= _MAX_PLAIN_BYTES else zlib.compress(value)

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Parse the node's value; `CoordinationError` if it is malformed."""
        try:
            if not value.startswith(b"{"):
                value = zlib.decompressobj().decompress(value, MAX_BYTES)
            found = json.loads(value)
            if found["version"] != 1:
                raise ValueError(f"version {found['version']}")
            return cls(tuple(map(_decode_rule, found["rules"])), int(found["next"]))
        except (zlib.error, ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
            raise CoordinationError(
                f"the rules in node /acls are malformed ({error}): {value[:80]!r}"
            ) from error


_IS_PREFIX = {"literal": False, "prefix": True}
_IS_ALLOWED = {"deny": False, "allow": True}


def _decode_rule(found: dict[str, str]) -> Rule:
    return Rule(
        parse_principal(found["principal"]),
        Operation(found["operation"]),
        Resource(ResourceType(found["type"]), str(found["name"])),
        _IS_PREFIX[found.get("pattern", "literal")],
        _IS_ALLOWED[found.get("effect", "allow")],
        str(found.get("host", ANY)),
        int(found["id"]),
    )
