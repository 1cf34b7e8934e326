"""What commands write to: its failures name it, and a reader that has seen enough is none."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING

import click

from pcapstat.errors import UsageError, naming, unwritable

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import ReadableBuffer

DESCRIPTORS = "/dev/fd"
STANDARD_NAMES = {"/dev/stdout": 1, "/dev/stderr": 2}
SIGNALLED = 128
"""What shells add to a signal's number in an exit code."""


class ReaderGone(Exception):
    """Whoever reads the output has seen enough (| head): that is no error."""


class Output(io.FileIO):
    """A file or stream to write to. Raises OutputError, once: what is still in buffers then goes nowhere."""

    def __init__(self, descriptor: int, named: str, *, closes: bool = True) -> None:
        """Take an open descriptor, with the name that errors have."""
        super().__init__(descriptor, "wb", closefd=closes)
        self.named = named
        self.has_failed = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes. Raises OutputError, ReaderGone."""
        if self.has_failed:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except BrokenPipeError:
            self.has_failed = True
            raise ReaderGone from None
        except OSError as error:
            self.has_failed = True
            raise unwritable(self.named, error) from None


def standard_streams() -> None:
    """Let standard output tell its failures as files do. Text that its encoding lacks is escaped; a closed stream stays unusable."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    is_open = sys.stdout is not None
    # where it is closed its number is taken, so that no other file gets it; what is open for reading cannot be written to
    descriptor = sys.stdout.fileno() if is_open else os.open(os.devnull, os.O_RDONLY)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(Output(descriptor, "standard output", closes=False)),
        encoding=sys.stdout.encoding if is_open else "utf-8",
        errors="backslashreplace",
        line_buffering=is_open and sys.stdout.isatty(),
    )


@contextlib.contextmanager
def destination(output: str | None) -> Iterator[IO[bytes]]:
    """Open standard output, a stream that is there (a device, a named pipe), or a file that appears only when it is whole.

    Raises OutputError where it cannot be written, UsageError where it is one of the files that are read.
    """
    if output is None or output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    refuse_input(output)
    with stream(output) if is_stream(output) else whole(output) as file:
        yield file


def is_stream(path: str) -> bool:
    """Whether what a path names is there and must not be replaced: a device, a named pipe, a descriptor of this process."""
    return descriptor_of(path) is not None or (os.path.exists(path) and not os.path.isfile(path))


def descriptor_of(path: str) -> int | None:
    """Return the descriptor that a path names: /dev/stdout, /dev/fd/N as shells write >(command), /proc/self/fd/N."""
    folder, name = os.path.split(path)
    if os.path.realpath(folder) == os.path.realpath(DESCRIPTORS) and name.isdecimal():
        return int(name)
    return STANDARD_NAMES.get(path)


def stream(output: str) -> IO[bytes]:
    """Open what is there, to write behind what it holds; a descriptor as it is, since its place in a file is shared with others."""
    number = descriptor_of(output)
    with naming(output):
        return io.BufferedWriter(Output(os.open(output, os.O_WRONLY | os.O_APPEND) if number is None else os.dup(number), output))


@contextlib.contextmanager
def whole(output: str) -> Iterator[IO[bytes]]:
    """Write beside a file, or beside what a link leads to, and put it in place when it is whole."""
    # imported here: most figures go to the terminal
    import tempfile
    from pathlib import Path

    target = Path(os.path.realpath(output))
    with naming(output):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    part = Path(name)
    try:
        with gone_at_the_end(part), io.BufferedWriter(Output(handle, output)) as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        with naming(output):
            part.chmod(0o666 & ~mask)
            part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def gone_at_the_end(part: Path) -> Iterator[None]:
    """Let no part of a file stay when SIGTERM ends the process.

    A thread of its own does that, at once: while code in C works (DuckDB, pyarrow), no handler of Python's is called.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    handler = signal.signal(signal.SIGTERM, lambda *_: None)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=remove_at_sigterm, args=(reading, part), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGTERM, handler)
        os.close(writing)


def remove_at_sigterm(signals: int, part: Path) -> None:
    """Wait for SIGTERM among the signals, whose numbers come as bytes, until no more can come."""
    with open(signals, "rb", buffering=0) as numbers:
        while number := numbers.read(1):
            if number[0] == signal.SIGTERM:
                part.unlink(missing_ok=True)
                os._exit(SIGNALLED + signal.SIGTERM)


def refuse_input(output: str) -> None:
    """Refuse an output that is also one of the other files of the command. Raises UsageError."""
    # among the paths that the user named the output's own name stands too
    if sum(is_same(path, output) for path in named_paths()) > 1:
        raise UsageError(f"{output}: is also one of the command's other files (write to another file)")


def named_paths() -> Iterator[str]:
    """Yield the paths that the user gave the command under way, whatever they are for."""
    context = click.get_current_context(silent=True)
    if context is None:
        return
    names = [parameter.name for parameter in context.command.params if isinstance(parameter.type, click.Path)]
    for value in (context.params.get(name) for name in names):
        yield from [value] if isinstance(value, str) else value or ()


def is_same(path: str, output: str) -> bool:
    """Whether a path, or standard input for "-", is the regular file that the output would replace."""
    try:
        return os.path.isfile(output) and os.path.samestat(os.fstat(0) if path == "-" else os.stat(path), os.stat(output))
    except OSError:
        return False


def listed(rows: Iterable[tuple[str, str]]) -> None:
    """Print names, each with what it is, within the width of --help."""
    formatter = click.HelpFormatter()
    formatter.write_dl(list(rows))
    click.echo(formatter.getvalue(), nl=False)


def complain(text: object) -> None:
    """Write a line about what is wrong to standard error."""
    from pcapstat.formats.text import visible

    click.echo(f"pcapstat: {visible(str(text))}", err=True)
