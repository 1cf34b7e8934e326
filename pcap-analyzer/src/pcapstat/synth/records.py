"""Records of TLS and DTLS around content: in the clear, or of the size that protection makes."""

from __future__ import annotations

from pcapstat.synth.handshake import APPLICATION_DATA, Record
from pcapstat.synth.scenario import Scenario
from pcapstat.theory.security import MOST_CONTENT, PROTECTIONS, Protection

APPLICATION_EPOCHS = {"tls1.2": 1, "tls1.3": 3, "dtls1.2": 1, "dtls1.3": 3}
"""The epoch of application data (RFC 6347 §4.1, RFC 9147 §6.1)."""
CIPHERTEXT = b"\xff"
"""Stands for each byte that would be encrypted: zeros would look like messages in the clear."""


class Layer:
    """The record layer of one side: it numbers its records, in each epoch from 0 on."""

    def __init__(self, scenario: Scenario) -> None:
        """Begin with what the scenario says of security."""
        self.scenario, self.numbers = scenario, dict[int, int]()

    def around(self, content: bytes) -> bytes:
        """Put application data into a record, or into as many as it takes; without security nothing is put around it."""
        if PROTECTIONS[self.scenario.security] is None:
            return content
        epoch = APPLICATION_EPOCHS[self.scenario.security.partition("-")[0]]
        parts = (content[at : at + MOST_CONTENT] for at in range(0, len(content), MOST_CONTENT))
        return b"".join(self.record(Record(APPLICATION_DATA, part, epoch)) for part in parts)

    def record(self, record: Record) -> bytes:
        """Return a record."""
        protection = PROTECTIONS[self.scenario.security]
        number = self.numbers.get(record.epoch, 0)
        self.numbers[record.epoch] = number + 1
        if protection is None or record.epoch == 0:
            return self.plain(record, number)
        fragment = CIPHERTEXT * (protection.nonce_bytes + len(record.content) + protection.type_bytes + protection.tag_bytes)
        return self.protected(record, number, fragment, protection)

    def plain(self, record: Record, number: int) -> bytes:
        """Return a record in the clear (RFC 8446 §5.1, RFC 6347 §4.1)."""
        length = len(record.content).to_bytes(2, "big")
        if self.scenario.transport == "tcp":
            return bytes([record.kind]) + b"\x03\x03" + length + record.content
        return bytes([record.kind]) + b"\xfe\xfd" + bytes(2) + number.to_bytes(6, "big") + length + record.content

    def protected(self, record: Record, number: int, fragment: bytes, protection: Protection) -> bytes:
        """Return a protected record: TLS 1.3 and DTLS 1.3 hide its type (RFC 8446 §5.2, RFC 9147 §4)."""
        kind = bytes([APPLICATION_DATA if protection.type_bytes else record.kind])
        length = len(fragment).to_bytes(2, "big")
        if self.scenario.transport == "tcp":
            return kind + b"\x03\x03" + length + fragment
        if protection.type_bytes == 0:
            return kind + b"\xfe\xfd" + record.epoch.to_bytes(2, "big") + number.to_bytes(6, "big") + length + fragment
        return bytes([0x2C | record.epoch & 3]) + number.to_bytes(2, "big") + length + fragment
