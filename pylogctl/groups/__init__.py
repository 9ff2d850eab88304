"""Consumer groups as the command line sees and changes them, importable without any command."""
