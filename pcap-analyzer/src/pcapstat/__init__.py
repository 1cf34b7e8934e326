"""Measures IoT protocols from packet captures: messages, exchanges, sessions, and the figures that studies take from them."""

from pcapstat.archive import dataset
from pcapstat.capture import Capture, open
from pcapstat.errors import PcapstatError

__all__ = ["Capture", "PcapstatError", "dataset", "open"]
__version__ = "0.1.0"
