"""What tests of the command line need of their surroundings."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _heeding_interrupts() -> Iterator[None]:
    """Let tests interrupt what they start: a shell has what it starts in the background ignore SIGINT, which is handed on."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
