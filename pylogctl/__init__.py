"""The command line toolkit of pylogctl, on top of the `broker` library.

Nothing in `broker` imports this package.
"""

from __future__ import annotations

from broker import __version__ as __version__

__released__ = "2026-11-21"
