"""Theory: what the standards say that a message weighs. No line of it knows a capture."""

from pcapstat.theory.size import Line, Size

__all__ = ["Line", "Size"]
