"""The rows of `pylogctl acl`, and the documents that show them."""

from __future__ import annotations

from typing import Annotated

from broker.security.rules import Rule
from pylogctl.cli.columns import Document, Fit, Flag, Integer, Row, Text


class RuleRow(Row):
    """A rule."""

    id: Annotated[Integer, "number, which `acl remove` takes"]
    effect: Annotated[Text, "allow, or deny, which wins", Fit.WHOLE]
    principal: Annotated[Text, "user; User:* is everybody"]
    operation: Annotated[Text, "what it is about; all is everything", Fit.WHOLE]
    resource: Annotated[Text, "to what; topic:web* is each topic that begins so"]
    host: Annotated[Text, "address of the client; * is each"]


class CheckRow(Row):
    """A rule, and what it means for a decision; the first row is the one that decides."""

    allowed: Annotated[Flag, "the answer to the question"]
    role: Annotated[
        str,
        "decides, or lost to the one that does; default: no rule matched; super user: none is "
        "asked; misses: does not match, for this reason only",
        Fit.WRAP,
    ]
    rule: RuleRow


RULES = Document("acl.rules/1", RuleRow, empty="no rules")
CHANGE = Document("acl.change/1", RuleRow, empty="nothing changed")
CHECK = Document("acl.check/1", CheckRow, empty="no decision")


def row_of(rule: Rule) -> RuleRow:
    """Return the row of a rule."""
    effect = "allow" if rule.is_allowed else "deny"
    who, what = str(rule.principal), str(rule.operation)
    return RuleRow(rule.number, effect, who, what, rule.pattern, rule.host)
