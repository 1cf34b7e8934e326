"""Public captures with their secrets: what tshark opens, cut and counted by the core; each byte of a frame once."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pytest

import pcapstat
from against_tshark.listed import SHARED


def secured() -> list[tuple[str, dict[str, list[str]]]]:
    """Return captures whose manifest names files of secrets, with the options that hand these over."""
    if not SHARED.is_dir():
        return []
    found = []
    with (SHARED / "MANIFEST.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            names = [name for name in row["secrets_file"].split(";") if name and not name.startswith("(")]
            options: dict[str, list[str]] = {}
            for name in names:
                is_rsa = "rsa_keys" in row["decrypt_command"] and ("rsa" in name or "private" in name)
                options.setdefault("rsa_key" if is_rsa else "keylog", []).append(str(SHARED / name))
            if names:
                found.append((row["path"], options))
    return found


@pytest.mark.parametrize(("name", "secrets"), secured(), ids=lambda value: value if isinstance(value, str) else "")
def test_parts_of_opened_captures_add_up(name: str, secrets: dict[str, list[str]]) -> None:
    """Handshakes, records that were opened and those that were not, by key log and by RSA key."""
    sums = pcapstat.open(SHARED / name, **secrets).sums()  # type: ignore[arg-type]
    sessions = [sums.session(number) for number in range(len(sums))]
    counted = sum(sum(row["parts"]) for session in sessions for row in session["kinds"]) + sum(row["bytes"] for row in sums.others)
    directions = [row for session in sessions for row in session["directions"]]
    counted += sum(sum(row["control_parts"]) + sum(row["unassigned_parts"]) for row in directions)

    assert counted == sum(row["frame_bytes"] for row in sums.captures)


OWN_PORTS = ("arkime/wireshark-dtls12.pcap", "wireshark-wiki/ThreadCommissioning-JPAKE-DTLS-1.pcapng")
"""Where tshark has to be told what is inside DTLS."""


@pytest.mark.parametrize(("name", "secrets"), [entry for entry in secured() if entry[0] in OWN_PORTS])
def test_coap_on_ports_of_its_own_is_found_in_dtls(name: str, secrets: dict[str, list[str]]) -> None:
    """What was opened is told by its bytes."""
    capture = pcapstat.open(SHARED / name, **secrets)  # type: ignore[arg-type]
    assert [row["code"] for row in pa.table(capture.messages).to_pylist() if row["protocol"] == "coap"] != []


def test_the_captures_of_rsasnakeoil_show_their_pages() -> None:
    """A response over two records of one frame is one message (SSL 3.0, RSA): status codes in order, as tshark shows them."""
    if not SHARED.is_dir():
        return
    key = str(SHARED / "wireshark-wiki" / "secrets" / "rsasnakeoil2.key")
    rows = pa.table(pcapstat.open(Path(SHARED / "wireshark-wiki" / "rsasnakeoil2.pcap"), rsa_key=[key]).messages).to_pylist()
    codes = [row["variant"] for row in rows if row["protocol"] == "http" and row["direction"] == "s2c" and row["stream"] == 0]
    assert codes == ["200", "404", "301", "200", "200", "404"]
