"""What all commands share: the command tree, options, connections, output."""
