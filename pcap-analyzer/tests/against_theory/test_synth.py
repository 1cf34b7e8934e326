"""Synthetic captures: the messages, sizes and times that the scenario asks for, and no rule of the standards broken."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from places import CAPTURES

import pcapstat
from pcapstat.errors import UsageError
from pcapstat.metrics.sessions import SessionFigures
from pcapstat.rules import judge
from pcapstat.rules.sizes import sizes
from pcapstat.synth import shipped
from pcapstat.synth.builders import build
from pcapstat.synth.scenario import Scenario, read
from pcapstat.theory import coap
from pcapstat.theory.envelope import Path as Carrier
from pcapstat.theory.envelope import around
from pcapstat.theory.security import PROTECTIONS


def made(tmp_path: Path, scenario: Scenario) -> pcapstat.Capture:
    """Build a scenario's capture and open it."""
    path = tmp_path / "made.pcapng"
    build(scenario, path)
    framing = {"frame_length": scenario.payload_bytes} if scenario.protocol == "tcp" else {}
    sizing = {} if scenario.security == "none" else {"payload_size": scenario.payload_bytes, "receiver": "client"}
    return pcapstat.open(path, **framing, **sizing)


@pytest.mark.parametrize("name", shipped())
def test_each_scenario_of_the_project_is_what_it_says(name: str, tmp_path: Path) -> None:
    """As many data messages of the payload as it asks for, each rule kept, each size the specified one."""
    scenario = read(name)
    capture = made(tmp_path, scenario)
    rows = pa.table(capture.messages).to_pylist()
    assert list(judge(lambda: rows, [])) == []
    assert all(row.specified in {None, row.observed} for row in sizes(iter(rows)))
    session = next(iter(capture.summary().sessions))
    assert (session.data_messages, session.data_bytes) == (scenario.count, scenario.count * scenario.payload_bytes)


def test_a_frame_has_the_size_that_theory_says(tmp_path: Path) -> None:
    """Study A's notification in the clear and in a DTLS record."""
    message = coap.message(8, [("Observe", "13"), ("Content-Format", "0")], 10)
    for security in ("none", "dtls1.2-ccm8"):
        capture = made(tmp_path, Scenario("coap", "observe", count=20, security=security))
        expected = around(message, Carrier("udp", "ethernet"), security).bytes
        assert expected in {row["frame_bytes"] for row in pa.table(capture.messages).to_pylist()}


def test_a_lost_message_is_sent_again_or_missing(tmp_path: Path) -> None:
    """CON comes after the timeout, NON never."""
    con = made(tmp_path, Scenario("coap", "get", kind="CON", count=10, loss=(5,), interval_ms=10, ack_timeout_ms=2000))
    (session,) = con.summary().sessions
    assert session.data_messages == 10
    assert session.delta_time_s == pytest.approx(2.04, abs=0.02)
    non = made(tmp_path, Scenario("coap", "observe", kind="NON", count=10, loss=(5,)))
    (session,) = non.summary().sessions
    assert session.data_messages == 9


def test_a_stream_keeps_its_order_behind_a_loss(tmp_path: Path) -> None:
    """RFC 9293 §3.1: what is behind a lost segment is delivered with its retransmission: 200 ms behind the 3rd's time."""
    capture = made(tmp_path, Scenario("mqtt", "publish", qos=1, count=10, interval_ms=20, rto_ms=200, loss=(3,)))
    rows = [row for row in pa.table(capture.messages).to_pylist() if (row["kind"], row["direction"]) == ("PUBLISH", "s2c")]
    begin = rows[0]["time_ns"]
    assert [row["message_id"] for row in rows] == [*range(1, 11)]
    assert [round((row["time_ns"] - begin) / 1e6) for row in rows] == [0, 20, *[240] * 8]


@pytest.mark.parametrize(
    ("scenario", "sizes"),
    [
        # Ethernet's packet of 1500 bytes: less IPv4 20 and TCP 32, with IPv6 40 and 32
        (Scenario("tcp", "stream", count=1, payload_bytes=3000), [1514, 1514, 14 + 52 + 3000 - 2 * 1448]),
        (Scenario("tcp", "stream", count=1, payload_bytes=3000, ip=6), [1514, 1514, 14 + 72 + 3000 - 2 * 1428]),
        # RFC 791 §3.2, RFC 8200 §4.5: UDP's header, then 4 bytes of header, a marker and the payload; fragments hold multiples of 8 bytes
        (Scenario("coap", "get", kind="NON", count=1, payload_bytes=3000, token_bytes=0), [1514, 1514, 14 + 20 + 3014 - 2 * 1480]),
        (Scenario("coap", "get", kind="NON", count=1, payload_bytes=3000, token_bytes=0, ip=6), [1510, 1510, 14 + 48 + 3014 - 2 * 1448]),
    ],
    ids=["TCP, IPv4", "TCP, IPv6", "UDP, IPv4", "UDP, IPv6"],
)
def test_no_packet_is_longer_than_its_link_carries(scenario: Scenario, sizes: list[int], tmp_path: Path) -> None:
    """Segments fill packets of Ethernet; a datagram that is longer has fragments, which are put together again."""
    from scapy.utils import rdpcap

    capture = made(tmp_path, scenario)
    message = max(pa.table(capture.messages).to_pylist(), key=lambda row: row["payload_bytes"])
    assert (message["payload_bytes"], message["frame_bytes"]) == (3000, sum(sizes))
    assert sorted(len(frame) for frame in rdpcap(str(tmp_path / "made.pcapng")))[-3:] == sorted(sizes)


def test_a_long_message_has_several_records(tmp_path: Path) -> None:
    """RFC 8446 §5.1: 2^14 bytes at most in each; a PUBLISH of 20,000 bytes with 16 before its payload, content type and tag 17 more."""
    capture = made(tmp_path, Scenario("mqtt", "publish", count=1, payload_bytes=20_000, topic_alias=False, security="tls1.3"))
    rows = pa.table(capture.messages).to_pylist()
    assert [row["plaintext_bytes"] for row in rows if (row["plaintext_bytes"] or 0) > 1000][:2] == [16_384, 20_016 - 16_384]


def test_qos_2_of_mqtt_sn_has_its_flow(tmp_path: Path) -> None:
    """MQTT-SN 1.2 §6.13 as MQTT: PUBREC, PUBREL, PUBCOMP by turns."""
    capture = made(tmp_path, Scenario("mqtt-sn", "publish", qos=2, count=2))
    rows = [(row["kind"], row["direction"]) for row in pa.table(capture.messages).to_pylist()]
    flow = [("PUBLISH", "c2s"), ("PUBREC", "s2c"), ("PUBREL", "c2s"), ("PUBCOMP", "s2c")]
    assert rows[-8:] == flow * 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("protocol: smtp", "there are: coap"),
        ("{", "check its YAML"),
        ("count: 3", "no key protocol"),
        ("protocol: coap\nsize: 3", "no key size"),
    ],
)
def test_a_scenario_that_cannot_be_read_is_one_line(text: str, told: str, tmp_path: Path) -> None:
    """Each error names the file, what is wrong, and what is possible."""
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=told) as raised:
        read(str(path))
    assert "\n" not in str(raised.value)


def received(path: Path, **options: object) -> SessionFigures:
    """Return the figures of the session that received 100 data messages, with those 100."""
    sessions = pcapstat.open(path, stop_after=100, **options).summary().sessions  # type: ignore[arg-type]
    (session,) = (each for each in sessions if each.receiver == "client" and each.data_messages == 100)
    return session


def predicted(name: str, tmp_path: Path) -> Path:
    """Build a scenario of the project."""
    path = tmp_path / f"{name}.pcapng"
    build(read(name), path)
    return path


@pytest.mark.parametrize("name", ["a-californium-con", "a-californium-non"])
def test_theory_predicts_what_californium_costs(name: str, tmp_path: Path) -> None:
    """The overhead of Study A's run is that of our recording to the byte; that each 100th NON is confirmed is known from the recording."""
    assert received(predicted(name, tmp_path)).overhead_bytes == received(CAPTURES / f"{name}.pcapng").overhead_bytes


@pytest.mark.parametrize("name", ["a-californium-dtls-con", "a-californium-dtls-non"])
def test_theory_predicts_what_dtls_costs(name: str, tmp_path: Path) -> None:
    """To the byte; what the handshake holds is fitted to these recordings, so for its bytes this is a regression test only."""
    capture = pcapstat.open(predicted(name, tmp_path), payload_size=10, receiver="client")
    (theory,) = capture.summary().sessions
    practice = received(CAPTURES / f"{name}.pcapng", keylog=[str(CAPTURES / f"{name}.keys")])
    assert theory.session_bytes == practice.session_bytes
    assert theory.handshake_bytes == practice.handshake_bytes == 785


@pytest.mark.parametrize(
    ("name", "recording", "bare"),
    [("a-mqtt-qos0", "a-paho-qos0", 100), ("a-mqtt-qos1", "a-paho-qos1", 0), ("a-mqtt-qos1", "a-hivemq-qos1", 0)],
)
def test_theory_predicts_what_mqtt_costs(name: str, recording: str, bare: int, tmp_path: Path) -> None:
    """Within 2 %; when TCP waits with an acknowledgement is fitted to these recordings (docs/how-to/synth.md)."""
    theory, practice = (received(path) for path in (predicted(name, tmp_path), CAPTURES / f"{recording}.pcapng"))
    assert theory.overhead_bytes == pytest.approx(practice.overhead_bytes, rel=0.02)
    assert theory.control_frames == pytest.approx(bare, abs=10)
    assert practice.control_frames == pytest.approx(bare, abs=10)


def acknowledgements(tmp_path: Path, scenario: Scenario) -> list[tuple[float, int]]:
    """Return times (ms, from the first frame on) and numbers of the bare acknowledgements of the receiver's connection."""
    from scapy.layers.inet import IP, TCP
    from scapy.utils import rdpcap

    path = tmp_path / "made.pcapng"
    build(scenario, path)
    frames = [frame for frame in rdpcap(str(path)) if 40000 in {frame[TCP].sport, frame[TCP].dport}]
    begin = frames[0].time
    bare = [frame for frame in frames if frame[IP].len == 52 and frame[TCP].flags == "A"]
    return [(float(frame.time - begin) * 1000, frame[TCP].ack) for frame in bare]


def test_an_acknowledgement_waits_for_data_as_long_as_it_may(tmp_path: Path) -> None:
    """RFC 1122 §4.2.3.2: PUBACK's acknowledgement goes with the next PUBLISH in time, else alone and late."""
    soon = acknowledgements(tmp_path, Scenario("mqtt", "publish", qos=1, count=20, interval_ms=20, delayed_ack_ms=40))
    late = acknowledgements(tmp_path, Scenario("mqtt", "publish", qos=1, count=20, interval_ms=60, delayed_ack_ms=40))
    assert len(soon) < 10
    assert len(late) > 20


def test_two_full_segments_are_acknowledged_at_once(tmp_path: Path) -> None:
    """RFC 5681 §4.2: a message of ten segments gets five acknowledgements at least."""
    bare = acknowledgements(tmp_path, Scenario("tcp", "stream", count=1, payload_bytes=14480))
    assert len(bare) >= 5
    assert bare[-1][1] == 14481


@pytest.mark.parametrize("security", [name for name in PROTECTIONS if name != "none"])
def test_a_handshake_agrees_on_what_the_records_are(security: str, tmp_path: Path) -> None:
    """Each protection: version and suite are found, sizes of content are known, no rule is broken."""
    carrier = ("mqtt", "publish") if security.startswith("tls") else ("coap", "observe")
    capture = made(tmp_path, Scenario(*carrier, count=10, security=security))
    session = next(iter(capture.summary().sessions))
    version, _, suite = session.security.rpartition(" ")
    assert version == security.partition("-")[0].replace("tls", "TLS ").replace("dTLS", "DTLS")
    assert ("CCM_8" in suite, "CHACHA20" in suite) == ("ccm8" in security, "chacha20" in security)
    rows = pa.table(capture.messages).to_pylist()
    assert list(judge(lambda: rows, [])) == []
    kind = 26 if security.startswith("dtls") else 24
    assert sum(row["plaintext_bytes"] == kind for row in rows if row["kind"] == "Application Data") >= 9
