"""Of each rule of TLS and DTLS records: what is said in a capture that breaks it, and in one that nearly does."""

from __future__ import annotations

from against_standards.building import C, S, Said

ALERT, DATA = b"\x15\x03\x03\x00\x02\x02\x28", b"\x17\x03\x03\x00\x20" + b"x" * 32
HELLO = b"\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x03" + b"r" * 32 + b"\x00\x00\x02\x13\x01\x01\x00"
TLS: dict[str, tuple[Said, Said]] = {
    "RFC8446-6.2-alert": ([(C, HELLO), (S, ALERT), (S, DATA)], [(C, HELLO), (S, ALERT), (C, DATA)]),
}
