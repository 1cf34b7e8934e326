"""What can stop pcapstat: errors of one line that name the place and the remedy, each with its exit code."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

EXIT_FINE = 0
EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREADABLE = 3
EXIT_DAMAGED = 4
EXIT_TOOL_MISSING = 5


class PcapstatError(Exception):
    """An error for the user: `str()` is one line that ends with the remedy; `exit_code` is what the command leaves with."""

    exit_code = EXIT_CHECK_FAILED


class UnreadableCapture(PcapstatError):
    """A capture that is missing, empty, of no known format or version. Example: `x.pcap: no such file (check the path)`."""

    exit_code = EXIT_UNREADABLE


class UsageError(PcapstatError):
    """Options that contradict each other or cannot be read. Example: `-d tcp.port=1,mqtt: no "==" (write …)`."""

    exit_code = EXIT_USAGE


class OutputError(PcapstatError):
    """The output cannot be written. Example: `out.csv: Permission denied (write to another place, …)`."""

    exit_code = EXIT_UNREADABLE


def unwritable(output: str | os.PathLike[str], error: OSError) -> OutputError:
    """Return the error of an output."""
    return OutputError(f"{output}: {error.strerror or error} (write to another place, or make room there)")


@contextlib.contextmanager
def naming(output: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what goes wrong with an output itself into its error."""
    try:
        yield
    except OSError as error:
        raise unwritable(output, error) from None


class ToolMissing(PcapstatError):
    """A program that is needed is missing, too old or failed. Example: `tshark: not found (install Wireshark 4.0 or newer …)`."""

    exit_code = EXIT_TOOL_MISSING


ERRORS: list[type[PcapstatError]] = [UnreadableCapture, UsageError, OutputError, ToolMissing]
