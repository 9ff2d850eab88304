"""The command line toolkit of pylogctl, on top of the `broker` library.

Nothing in `broker` imports this package.
"""

from __future__ import annotations

__version__ = "0.1.0"
__released__ = "2026-11-21"
