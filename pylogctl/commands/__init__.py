"""One module for each command or command group; `pylogctl.app` imports them on demand."""
