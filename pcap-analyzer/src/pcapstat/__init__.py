"""Measures IoT protocols from packet captures: messages, exchanges, sessions, and the figures that studies take from them."""

from typing import TYPE_CHECKING

from pcapstat.capture import Capture, open
from pcapstat.engines import Tshark
from pcapstat.errors import PcapstatError
from pcapstat.metrics.sessions import Choices

if TYPE_CHECKING:
    from pcapstat.archive import dataset

__all__ = ["Capture", "Choices", "PcapstatError", "Tshark", "dataset", "open"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Return `dataset`, which is imported where it is asked for: commands that read one capture start sooner without it."""
    if name != "dataset":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pcapstat.archive import dataset

    return dataset
