"""Every recording of the project: what each receiver logged is what the tool finds in the capture, decrypted where it has to be."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from places import CAPTURES

import pcapstat
from pcapstat import wireshark
from pcapstat.metrics.sessions import SessionFigures

LATE_NS = 400_000_000
"""An application may log a message so much later than the capture stamps it (scheduling on a busy machine)."""
OLD_TSHARK = {"c-aiocoap-dtls-get": "ECDHE_PSK", "c-aiocoap-dtls-observe": "ECDHE_PSK", "a-californium-dtls-cid-con": "connection ID"}
"""What Wireshark 4.0 cannot open (DTLS with a pre-shared key and ECDHE, records with a connection ID): the payload size is told instead."""
WRAPPED = {"c-xmpp-pubsub": 39, "c-xmpp-tls-pubsub": 39}
"""Bytes of the XML element in a PubSub item around what the application logged."""


def names() -> list[str]:
    """Names of all scenarios."""
    return [path.name.removesuffix(".truth.json") for path in sorted(CAPTURES.glob("*.truth.json"))]


def opened(name: str, truth: dict[str, Any], **options: Any) -> pcapstat.Capture:
    """Open a recording as a user would, who has its keys and knows what the application sent."""
    keys = CAPTURES / f"{name}.keys"
    framing = {"frame_length": truth["parameters"]["size"]} if truth["protocol"] == "TCP" else {}
    if name in OLD_TSHARK:
        return pcapstat.open(CAPTURES / f"{name}.pcapng", engine="native", payload_size=10, receiver="client", **options)
    return pcapstat.open(CAPTURES / f"{name}.pcapng", keylog=[str(keys)] if keys.exists() else [], **framing, **options)


def data_to(capture: pcapstat.Capture, address: str) -> list[tuple[int, int]]:
    """Time and bytes, before compression, of the data messages to an address, in order."""
    names = ["is_data", "destination_address", "time_ns", "payload_bytes", "uncompressed_bytes"]
    rows = [row for row in pa.table(capture.messages).select(names).to_pylist() if row["is_data"] and row["destination_address"] == address]
    return [(row["time_ns"], row["payload_bytes"] if row["uncompressed_bytes"] is None else row["uncompressed_bytes"]) for row in rows]


def until(data: list[tuple[int, int]], wanted_bytes: int) -> list[tuple[int, int]]:
    """Return the first data messages, up to the one with which the wanted bytes are there."""
    sum_bytes = 0
    for index, (_, payload_bytes) in enumerate(data):
        sum_bytes += payload_bytes
        if sum_bytes >= wanted_bytes:
            return data[: index + 1]
    return data


def receivers(truth: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the applications that received."""
    return [application for application in truth["applications"] if application["received"]]


@pytest.mark.parametrize("name", names())
def test_what_was_received_is_in_the_capture(name: str) -> None:
    """As many bytes as the receiver logged, in data messages to it, over the time that it logged."""
    truth = json.loads((CAPTURES / f"{name}.truth.json").read_text())
    capture = opened(name, truth)
    assert receivers(truth)
    for receiver in receivers(truth):
        data, logged = data_to(capture, receiver["endpoint"]), receiver["received"]
        if name in OLD_TSHARK:
            first, last = data[0], data[len(logged) - 1]
        else:
            sizes = [size_bytes + WRAPPED.get(name, 0) for _, size_bytes, _ in logged]
            first, last = until(data, sizes[0])[-1], until(data, sum(sizes))[-1]
            assert sum(payload_bytes for _, payload_bytes in until(data, sum(sizes))) == sum(sizes)
        assert 0 <= logged[-1][0] - last[0] < LATE_NS
        assert (last[0] - first[0]) == pytest.approx(logged[-1][0] - logged[0][0], abs=LATE_NS)


@pytest.mark.parametrize("name", [name for name in names() if (CAPTURES / f"{name}.keys").exists() and name not in OLD_TSHARK])
def test_decrypted_parts_add_up_to_the_frames(name: str) -> None:
    """Opened or not, each byte of a frame is counted once."""
    sums = pcapstat.open(CAPTURES / f"{name}.pcapng", keylog=[str(CAPTURES / f"{name}.keys")]).sums()
    sessions = [sums.session(number) for number in range(len(sums))]
    counted = sum(sum(row["parts"]) for session in sessions for row in session["kinds"]) + sum(row["bytes"] for row in sums.others)
    directions = [row for session in sessions for row in session["directions"]]
    counted += sum(sum(row["control_parts"]) + sum(row["unassigned_parts"]) for row in directions)

    assert counted == sum(row["frame_bytes"] for row in sums.captures)


@pytest.mark.parametrize("name", [name for name in names() if (CAPTURES / f"{name}.keys").exists() and name not in OLD_TSHARK])
def test_nothing_stays_closed_where_the_keys_are_there(name: str) -> None:
    """No session of a recording with its keys keeps the note that its content is encrypted."""
    capture = pcapstat.open(CAPTURES / f"{name}.pcapng", keylog=[str(CAPTURES / f"{name}.keys")])
    is_closed = "encrypted" in {note["note"] for note in pa.table(capture.notes).to_pylist()}
    # Wireshark 4.2 takes the packets of 1-RTT behind others in a datagram for padding
    assert is_closed == (name == "c-http3" and (4, 2) <= wireshark.version(wireshark.find()) < (4, 4))


@pytest.mark.parametrize("name", [name for name in names() if "-tls" in name or name == "c-http2"])
def test_a_connection_shakes_hands_once(name: str) -> None:
    """As many handshakes as tshark finds ServerHellos: tickets that come behind a client's first data are none (RFC 8446 §4.6)."""
    path = CAPTURES / f"{name}.pcapng"
    command = ["tshark", "-n", "-r", str(path), "-Y", "tls.handshake.type == 2", "-T", "fields", "-e", "frame.number"]
    hellos = [int(frame) for frame in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()]
    exchanges = pcapstat.open(path, keylog=[str(CAPTURES / f"{name}.keys")]).exchanges.rows()
    handshakes = [(row["frame_ack"], row["outcome"]) for row in exchanges if row["kind"] == "handshake"]

    assert handshakes == [(frame, "complete") for frame in hellos]


SEVERAL = ("d-aiocoap-10kb", "d-aiocoap-1mb", "d-aiocoap-put-10kb", "e-californium-1920", "c-aiocoap-ws-observe", "c-libcoap-")
"""A message of the application takes several of the protocol (block-wise transfers) or a session of its own (libcoap's client), or frames
beside the data cannot be told from it."""


@pytest.mark.parametrize("name", [name for name in names() if not name.startswith(SEVERAL)])
def test_the_summary_ends_where_the_receiver_did(name: str) -> None:
    """With the number of messages that the receiver logged, its session has their bytes and a ΔTime that ends where the last was logged."""
    truth = json.loads((CAPTURES / f"{name}.truth.json").read_text())
    for receiver in receivers(truth):
        logged = receiver["received"]
        capture = opened(name, truth, stop_after=len(logged))
        sessions = [session for session in capture.summary().sessions if receives(session, receiver["endpoint"])]
        (session,) = [session for session in sessions if session.data_messages == len(logged)]
        assert session.data_bytes == sum(size_bytes + WRAPPED.get(name, 0) for _, size_bytes, _ in logged)
        assert session.time2_s is not None
        assert session.delta_time_s is not None
        # Time2 may be the receiver's acknowledgement, which is sent after the data is there
        assert session.time2_s == pytest.approx(logged[-1][0] / 1e9, abs=LATE_NS / 1e9)
        assert session.delta_time_s >= (logged[-1][0] - logged[0][0]) / 1e9 - LATE_NS / 1e9


def receives(session: SessionFigures, address: str) -> bool:
    """Whether the data of a session goes to an address."""
    return {"client": session.client, "server": session.server}[session.receiver].startswith(f"{address}:")


def test_padding_of_records_is_told_from_data() -> None:
    """Trap 86: a record takes 5 + 1 + 16 bytes (RFC 8446 §5.2), JDK's 16 more of padding: a PUBACK then is as long as a message."""
    path = CAPTURES / "a-paho-tls-qos1.pcapng"
    opened = [row for row in pa.table(pcapstat.open(path).messages).to_pylist() if row["kind"] == "PUBACK"]
    assert {(row["direction"], row["security_bytes"]) for row in opened} == {("c2s", 38), ("s2c", 22)}

    closed = pcapstat.open(path, engine="native", payload_size=10).summary().sessions
    # the publisher's session, and the subscriber's
    assert [session.receiver for session in closed] == ["server", "client"]


@pytest.mark.parametrize(("receiver", "expected"), [(None, 49), ("client", 50)])
def test_a_session_of_closed_records_ends_at_the_last_message_of_the_receiver_that_is_named(receiver: str | None, expected: int) -> None:
    """50 PUBLISH packets are wanted. PUBACKs are as long (trap 86): the client's fiftieth comes before the server's, as noted."""
    path = CAPTURES / "a-paho-tls-qos1.pcapng"
    capture = pcapstat.open(path, engine="native", payload_size=10, stop_after=50, receiver=receiver)
    session = capture.summary().sessions[1]
    notes = {row["note"] for row in capture.notes.rows() if row["session"] == 1}

    assert (session.receiver, session.data_messages) == ("client", expected)
    assert ("both-ways" in notes, "stopped" in notes) == (receiver is None, True)


def test_a_run_of_non_notifications_may_hold_con_ones() -> None:
    """Trap 88: Californium confirms one of them; each kind is counted by itself, as tshark does."""
    path = CAPTURES / "a-californium-non.pcapng"
    display_filter = "coap.code == 69 and not icmp"
    command = ["tshark", "-n", "-r", str(path), "-Y", display_filter, "-T", "fields", "-e", "coap.type"]
    shown = Counter(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    [session] = pcapstat.open(path).summary().sessions
    found = {kind.kind: kind.messages for kind in session.kinds if kind.kind.endswith("2.05")}

    assert found == {"CON 2.05": shown["0"], "NON 2.05": shown["1"], "ACK 2.05": shown["2"]}
    assert shown["0"] == 1


def test_records_with_a_connection_id_hold_what_is_sent_in_the_clear() -> None:
    """RFC 9146 §4. As without DTLS: notifications of 13 + 3 + 10 bytes, acknowledgements of 4, a registration of 23."""
    rows = pa.table(pcapstat.open(CAPTURES / "a-californium-dtls-cid-con.pcapng", engine="native").messages).to_pylist()
    held = {(row["direction"], row["plaintext_bytes"]) for row in rows if row["content_type"] == 25 and not row["variant"]}

    assert held == {("s2c", 26), ("c2s", 4), ("c2s", 23)}


@pytest.mark.parametrize(
    "name",
    ["c-aiocoap-get", "c-aiocoap-oscore-get", "a-paho-qos1", "a-hivemq-tls-qos0", "e-mqttsn-128", "d-aiocoap-put-10kb"],
)
def test_exchanges_alone_name_their_resource(name: str) -> None:
    """The table of exchanges names what was asked for or published, also where nobody asks for messages."""
    truth = json.loads((CAPTURES / f"{name}.truth.json").read_text())
    rows = pa.table(opened(name, truth).exchanges).to_pylist()
    about = {row["resource"] for row in rows if row["kind"].split()[0] in {"GET", "PUT", "PUBLISH", "observe"}}
    assert about == {truth["parameters"]["resource"]}
