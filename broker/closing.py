"""What is closed at the end of a `with` block."""

from __future__ import annotations

from typing import Self


class SelfClosing:
    """Is closed at the end of a `with` block, however that ends."""

    __slots__ = ()

    def close(self) -> None:
        """Close it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
