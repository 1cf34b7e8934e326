"""Lengths that CoAP's options may have, against those that Wireshark takes for valid, and the tables of later RFCs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from pcapstat.theory import coap

LATER = {
    "Q-Block1": (0, 3),
    "EDHOC": (0, 0),
    "Q-Block2": (0, 3),
    "Echo": (1, 40),
    "No-Response": (0, 1),
    "Request-Tag": (0, 8),
}
"""Bytes of options that some versions do not know (RFC 9177 §4.1, RFC 9668 §3.1, RFC 9175 §2.2.1 and §3.2.1, RFC 7967 §2)."""
OTHERWISE = {("Uri-Query", 0)}
"""Wireshark wants one byte at least; RFC 7252 §5.10 (Table 4) says 0 to 255."""


def extended(number: int) -> tuple[int, bytes]:
    """Return the four bits and the extension that stand for a number (RFC 7252 §3.1)."""
    if number < 13:
        return number, b""
    return (13, bytes([number - 13])) if number < 269 else (14, (number - 269).to_bytes(2, "big"))


def request(message_id: int, number: int, length: int) -> bytes:
    """Return a GET with one option of so many bytes."""
    (delta, delta_more), (size, size_more) = extended(number), extended(length)
    return bytes([0x40, 1]) + message_id.to_bytes(2, "big") + bytes([delta << 4 | size]) + delta_more + size_more + b"a" * length


def test_options_have_the_lengths_that_wireshark_takes_for_valid(tmp_path: Path) -> None:
    """The least and the most of each option, and one byte less and more."""
    cases = [
        (name, length, option)
        for name, option in coap.OPTIONS.items()
        for length in sorted({option.least - 1, option.least, option.most, option.most + 1} - {-1})
    ]
    below = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=40000, dport=5683)
    path = tmp_path / "options.pcap"
    wrpcap(str(path), [below / request(place, option.number, length) for place, (_, length, option) in enumerate(cases)])
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-e", "frame.number", "-e", "_ws.expert.message"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    unknown = {name for (name, _, _), line in zip(cases, told, strict=True) if "Invalid Option Number" in line}
    assert unknown <= set(LATER)
    assert {name: (coap.OPTIONS[name].least, coap.OPTIONS[name].most) for name in LATER} == LATER
    wrong = [
        (name, length)
        for (name, length, option), line in zip(cases, told, strict=True)
        if name not in unknown and ("Invalid" in line) == (option.least <= length <= option.most)
    ]
    assert set(wrong) <= OTHERWISE
