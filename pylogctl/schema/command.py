"""`pylogctl schema`: the options of its commands."""

from __future__ import annotations

from typing import Annotated, Literal

from pylogctl.cli.declarations import argument, inputs, selection
from pylogctl.cli.environment import Environment, ExitStatus, UsageError
from pylogctl.cli.options import CHANGE, CONNECTION, DRY_RUN, OUTPUT, App

app = App()

_READS = (ExitStatus.NOT_FOUND, ExitStatus.UNSUPPORTED)
_WRITES = (*_READS, ExitStatus.CONFLICT)

_Subject = Annotated[str, argument("SUBJECT", "Name, such as orders-value.")]
_File = Annotated[str, argument("FILE", "Text of the schema; - is stdin.")]
_Type = Annotated[
    Literal["avro", "json"] | None,
    inputs.option("--type", "What FILE has. Default: json if it has the key $schema, else avro."),
]
_Version = Annotated[
    str | None, selection.option("--version N|latest", "A version of the subject.")
]


@app.command(OUTPUT + CONNECTION, exits=_READS)
def list_(env: Environment) -> None:
    """List the subjects with their versions, the latest id, and their compatibility.

    $ pylogctl schema list
    $ pylogctl schema list --output json
    """
    from pylogctl.schema.reads import list_subjects

    list_subjects(env)


@app.command(OUTPUT + CONNECTION, exits=_READS)
def show(
    env: Environment,
    subject: str | None = argument("[SUBJECT]", "Name, such as orders-value.", default=None),
    version: _Version = None,
    schema_id: int | None = selection.option(
        "--id N", "The schema of an id, as it stands in front of messages.", min=1, max=2**31 - 1
    ),
) -> None:
    """Write the text of a schema: a version of a subject, by default the latest, or by its id.

    With --output or --columns: subject, version, id, type and text.

    $ pylogctl schema show orders-value
    $ pylogctl schema show orders-value --version 2 > order.avsc
    $ pylogctl schema show --id 7 --output json
    """
    from pylogctl.schema import reads

    if (subject is None) == (schema_id is None):
        raise UsageError("name one: SUBJECT or --id N")
    if subject is None and version is not None:
        raise UsageError("--version is of a SUBJECT, and --id alone names a schema")
    reads.show_schema(env, subject, reads.parse_version(version), schema_id)


@app.command(OUTPUT + CONNECTION + DRY_RUN, exits=_WRITES)
def add(env: Environment, subject: _Subject, file: _File, kind: _Type = None) -> None:
    """Register a schema as the next version of a subject, and tell its id.

    One that the subject has already keeps id and version. One that does not fit the versions
    before it, as the subject's compatibility says, is refused with status 4.

    $ pylogctl schema add orders-value order.avsc
    $ jq . order.json | pylogctl schema add orders-value -
    """
    from pylogctl.schema import changes

    changes.add_schema(env, subject, file, kind)


@app.command(OUTPUT + CONNECTION, exits=(*_READS, ExitStatus.CORRUPT))
def check(
    env: Environment,
    subject: _Subject,
    file: _File,
    kind: _Type = None,
    version: _Version = None,
) -> None:
    """Say whether a schema fits as the next version of a subject, and why not; status 8 if not.

    It is compared as the subject's compatibility says, with --version to that version alone.

    $ pylogctl schema check orders-value order.avsc
    $ pylogctl schema check orders-value order.avsc --version 1
    """
    from pylogctl.schema import reads

    reads.check_schema(env, subject, file, kind, version)


@app.command(OUTPUT + CONNECTION + CHANGE, exits=_WRITES)
def delete(env: Environment, subject: _Subject, version: _Version = None) -> None:
    """Delete a subject, or one version of it.

    Ids stay readable, as messages with them are in logs.

    $ pylogctl schema delete orders-value --version 3
    $ pylogctl schema delete orders-value --yes
    """
    from pylogctl.schema import changes
    from pylogctl.schema.reads import parse_version

    changes.delete_schema(env, subject, version is not None, parse_version(version))


@app.command(OUTPUT + CONNECTION + DRY_RUN, exits=_READS)
def compat(
    env: Environment,
    subject: str | None = argument(
        "[SUBJECT]", "Name, or <default> for subjects without a level of their own.", default=None
    ),
    level: str | None = argument(
        "[LEVEL]",
        "none, backward, forward or full, each but none also with _transitive; default removes "
        "the subject's own.",
        default=None,
    ),
) -> None:
    """Show or set how a new version of a subject has to fit those before it.

    backward: it reads messages of the version before; forward: that one reads its messages; full:
    both. The transitive levels compare it with all versions. JSON Schemas are not compared: a
    second version needs none.

    $ pylogctl schema compat
    $ pylogctl schema compat orders-value full_transitive
    $ pylogctl schema compat '<default>' backward
    """
    from pylogctl.schema import changes, reads

    if level is None:
        reads.show_compatibility(env, subject)
    else:
        assert subject is not None  # it stands before
        changes.set_compatibility(env, subject, level)
