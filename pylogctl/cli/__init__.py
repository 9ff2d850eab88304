"""What all commands share: the command tree, options, connections, output.

announcing.py       connections that announce a long wait; imported late, as this loads the
                    client library
app.py              the root of the command tree: the commands with their help, so that `--help`
                    imports none
client_settings.py  the settings of a command's client, from its options, properties and
                    defaults
columns.py          the columns of what a command writes: the fields of its rows, each with its
                    kind and meaning
complete.py         what completion offers: `pylogctl __complete SHELL WORD...`, the last word
                    being typed
completion.py       completion scripts for bash, zsh and fish: they ask the program what can be
                    typed
confirmation.py     questions before a change; the default answer is no
connections.py      connections of commands to ZooKeeper and brokers, by the shared options
context.py          contexts: named clusters in configuration files, one of which is current
declarations.py     how a command declares options, and what Typer reads of the declarations
discovery.py        finds the broker of this machine for a command that names neither brokers
                    nor a ZooKeeper
docgen.py           generates man pages, completion scripts and JSON Schemas from command tree,
                    `man/src` and rows
environment.py      the environment of a command: standard streams, environment variables,
                    clock, shared options
errors.py           exceptions of the command line, and the exit statuses
escapes.py          escapes for text of unknown origin: names and values of the registry,
                    messages, file names
failures.py         work that fails in part: some of several targets, or a corrupt message among
                    good ones
fields.py           `--help-fields`: the fields of what a command writes, from the JSON Schemas
                    in this package
foreign.py          what the words of other tools are here: of Kafka's scripts, kcat, rpk
help_page.py        the help of a command or group, as text: examples first, then the options
                    that matter most
layout.py           lays rows of text out for a terminal of some width
logs.py             logs: lines for people or JSON with fields, and the library's warnings as
                    those of a command
nodes.py            the commands as values, from which help, man pages, completions and tests
                    are made
offsets.py          `--offset` of commands: its values, its file, and what they mean for each
                    partition
options.py          the options that several commands share, declared once, and the decorator
                    that adds them
process.py          the process of a command that runs for long: signals that stop it, and its
                    memory
progress.py         progress of long work on standard error, and notes about waits
properties.py       client properties (`-X`): which each command takes, by its name, and their
                    layers
property_lists.py   `-X list` and `-X dump`: the properties of a command, or of all, and those
                    in effect
render.py           writes the records of a `Document` in any output format, and long text
                    through a pager
report.py           maps an exception to exit status, code word and sentence, and prints it
schemas.py          JSON Schemas of all documents, made from the classes of their rows
security.py         how a command secures its connections to brokers: by its context, `-X` and
                    options
selection.py        selection of topics by patterns, and the wait for topics; a malformed value
                    is a UsageError
service.py          services: the READY line, pid files, and running in the background
signals.py          handlers of signals: installed in this one place, as a signal ignored at the
                    start stays ignored
tracing.py          connections that log requests and responses: a line each with `-vv`, their
                    bytes with `-vvv`
tree.py             the command tree: lazy groups, parse errors, and running a command line
undo.py             undo files: what a command changed, as it was, and the command that restores
                    it
"""
