"""What all commands share: the command tree, options, connections, output.

app.py              the root of the command tree: the commands with their help, so that `--help`
                    imports none
columns.py          the columns of what a command writes: the fields of its rows, each with its
                    kind and meaning
complete.py         what completion offers: `pylogctl __complete SHELL WORD...`, the last word
                    being typed
completion.py       completion scripts for bash, zsh and fish: they ask the program what can be
                    typed
confirmation.py     questions before a change, whose default answer is no, and files to undo
                    it
connections.py      connections of commands to ZooKeeper and brokers, by the shared options
context.py          contexts: named clusters in configuration files, one of which is
                    current, and the local broker
declarations.py     how a command declares options, and what Typer reads of the declarations
decoding.py         messages with schemas: `--decode` makes JSON of payloads, `produce --schema`
                    payloads of JSON
environment.py      the environment of a command: standard streams, environment variables,
                    clock, shared options; statuses and errors
escapes.py          escapes for text of unknown origin: names and values of the registry,
                    messages, file names
failures.py         work that fails in part: some of several targets, or a corrupt message among
                    good ones
fields.py           `--help-fields`: the fields of what a command writes, from the JSON Schemas
                    in this package
foreign.py          what the words of other tools are here: of Kafka's scripts, kcat, rpk
help_page.py        the commands as values, and their help: examples first, then the options
                    that matter most
layout.py           lays rows of text out for a terminal of some width
logs.py             logs: lines for people or JSON with fields, and the library's warnings as
                    those of a command
offsets.py          `--offset` of commands: its values, its file, and what they mean for each
                    partition
options.py          the options that several commands share, declared once, and the decorator
                    that adds them
process.py          the process of a command that runs for long: signals that stop it, and its
                    memory
progress.py         progress of long work on standard error, and notes about waits
properties.py       client properties (`-X`): which each command takes, their layers, lists, and
                    the settings made of them
render.py           writes the records of a `Document` in any output format, and long text
                    through a pager
report.py           maps an exception to exit status, code word and sentence, and prints it
security.py         how a command secures its connections to brokers: by its context, `-X` and
                    options
selection.py        selection of topics by patterns, and the wait for topics; a malformed value
                    is a UsageError
service.py          services: the READY line, pid files, and running in the background
signals.py          handlers of signals: installed in this one place, as a signal ignored at the
                    start stays ignored
tracing.py          connections of commands: they announce a long wait, and log requests and
                    responses
tree.py             the command tree: lazy groups, parse errors, and running a command line
"""
