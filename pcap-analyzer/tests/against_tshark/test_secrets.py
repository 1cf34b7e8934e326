"""Public captures with their secrets: what tshark opens, cut and counted by the core; each byte of a frame once."""

from __future__ import annotations

import base64
import csv
from pathlib import Path

import pyarrow as pa
import pytest
from places import CAPTURES
from scapy.layers.inet import IP, UDP
from scapy.utils import wrpcap

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


OTHER_INSIDE = ("wireshark-notes/tls__imap-ssl.pcapng", "wireshark-notes/tls__ldap-ssl.pcapng", "wireshark-notes/tls__amqps.pcapng")
"""What tshark opens and shows as IMAP, LDAP, AMQP."""


@pytest.mark.parametrize(("name", "secrets"), [entry for entry in secured() if entry[0] in OTHER_INSIDE])
def test_what_is_opened_and_not_decoded_is_not_told_to_lack_a_secret(name: str, secrets: dict[str, list[str]]) -> None:
    """Its figures are those of records; the note tells why."""
    capture = pcapstat.open(SHARED / name, **secrets)  # type: ignore[arg-type]
    told = [row["text"] for row in pa.table(capture.notes).to_pylist() if row["note"] == "encrypted"]
    assert told != []
    assert all(text.endswith("opened, but it holds no protocol that is decoded") for text in told)


def test_the_captures_of_rsasnakeoil_show_their_pages() -> None:
    """A response over two records of one frame is one message (SSL 3.0, RSA): status codes in order, as tshark shows them."""
    if not SHARED.is_dir():
        return
    key = str(SHARED / "wireshark-wiki" / "secrets" / "rsasnakeoil2.key")
    rows = pa.table(pcapstat.open(Path(SHARED / "wireshark-wiki" / "rsasnakeoil2.pcap"), rsa_key=[key]).messages).to_pylist()
    codes = [row["variant"] for row in rows if row["protocol"] == "http" and row["direction"] == "s2c" and row["stream"] == 0]
    assert codes == ["200", "404", "301", "200", "200", "404"]


EARLY = base64.b85decode(
    "#sB~S0SN5}u177M6!!@B=f}RudBMT}LUr)4(Y9-6+LM4mHN7<#E2O$E!%VTBKfs)u>V_fBPx%y`YLFNT{Ohki_$Q;AA$uu8`W@GJ0!V7gGQlU)Aeop|wWw<e"
    "r@~=0!`l0X*uaS&iAIcAY&?3PY(W<rdGFeDs_=&GDv>^^bFK&%|2+e)Knxm^+1>TBnys*F3`~zGqt5RwlyJurV*<>_;dmRJO56V|amTIl@vm0p6Vl6Fx%`}="
    "{Q9Iho>!ugs~(A!Z+l??NKhs$g_E6p6%>`<-``<~c9`J{jh;OOHWxV(F6uOEAa5-XYJYE74N>E8v_Nn6su^LeXh2--ud%}?OiA3g)H{7|x?~AwQzDCixTuw7"
    "PfNgExU|43RSb{?6(*Qw{hvl|LB@A=h-N1N>7J;FE!x%$?WxLW%bqYH#N13GwxCvp6HIWH7S&@;!XrkCnvu3W!Ks800K;74ean`Yy%Y0uAbP?3^-O8(^P(D!"
    "Z|p(`znZ{#fUs+Fo$Wdm=iu*H79t`HZuoNpqWY!XiX926648pz4_RYgBUgEIx+6jZ@?#>)dx(pOoz_PUUs-z&#k5+8k@IH&ZVNZ%XuWXq_u6ocIFUIbC_QuN"
    "w*4x;YYNY;dvVk~ygoVTh<U}*E#}aQO-08Ln$zJ>LqRV@mCT&3^6hM{8=n<LzPOCBKoKb=8+EGACEP2!OXcH4B_@{RY&0vkL+|wB!%-v^wy3I_Ge-;$qLdRR"
    "R;x6eK`DphE}AXQZf{k=ibCV35o&@yj@n0#YFD@Fu+SKx@2$~oCTyz;j|H`H#yp+13u?`y`Ra}p-Y6!c#1#^#{lWlk___1_lfXXM000012<->1M=hNc_Xzgq"
    "$G*vV!NNdA<Dp^#VE@u2TbbW&t{)C@1fqaow(S?bb-58>hXJ)XM~l3shQ-6IiyEclc?sSP#rEyWpRjYinvc`pA;H-*<t61o`v"
)
"""A datagram of aioquic 1.7.2: an Initial packet, and a 0-RTT packet with GET /11 of HTTP/3 behind the client's three own streams."""
EARLY_SECRET = (
    "CLIENT_EARLY_TRAFFIC_SECRET f46b21ae19d62125af16dea8be5d831c114a05efe8fa2014f6019ae92bb03a51 "
    "69031ae217c8d5f093b9049013708d29de5f510d15df31ea50cf8d6b8c4a40f15eb4c19135946065ebc2b54c08e09734\n"
)


def test_early_data_of_quic_is_opened(tmp_path: Path) -> None:
    """RFC 9001 §4.6: tshark shows the streams 2, 6, 10 and 0 in the 0-RTT packet, and the Initial packet tells what protects them."""
    capture, keys = tmp_path / "early.pcap", tmp_path / "early.keys"
    wrpcap(str(capture), [IP(dst="192.0.2.1") / UDP(sport=40_000, dport=4433) / EARLY])
    keys.write_text(EARLY_SECRET)
    opened = pcapstat.open(capture, keylog=[str(keys)])

    rows = [row for row in pa.table(opened.messages).to_pylist() if row["kind"] == "STREAM"]
    assert [(row["protocol"], row["stream_id"], row["variant"]) for row in rows] == [
        ("http3", 2, "SETTINGS"),
        ("http3", 6, "QPACK encoder"),
        ("http3", 10, "QPACK decoder"),
        ("http3", 0, "HEADERS"),
    ]
    [session] = pa.table(opened.sessions).to_pylist()
    assert (session["version"], session["security"]) == ("HTTP/3", "QUIC v1")


def test_protected_alerts_of_tls_1_3_are_none_of_the_handshake() -> None:
    """RFC 8446 §5.2, §6: opened, an alert is known, as up to TLS 1.2; tickets are handshake messages, and count as such."""
    capture = pcapstat.open(CAPTURES / "a-paho-tls-qos1.pcapng")
    rows = [row for row in pa.table(capture.messages).to_pylist() if row["protocol"] == "tls"]

    alerts = [row for row in rows if row["kind"] == "Alert"]
    assert len(alerts) > 0
    assert all(row["exchange"] is None for row in alerts)
    counted = sum(row["handshake_bytes"] for row in pa.table(capture.sessions).to_pylist())
    assert counted == sum(row["frame_bytes"] for row in rows if row["kind"] in {"Handshake", "Change Cipher Spec"})


def test_a_cipher_suite_without_encryption_is_opened() -> None:
    """wireshark-notes: one page by HTTP in records that TLS_RSA_WITH_NULL_SHA256 only authenticates."""
    if not SHARED.is_dir():
        return
    key_log = str(SHARED / "wireshark-notes" / "secrets" / "tls-null.keys")
    rows = pa.table(pcapstat.open(SHARED / "wireshark-notes" / "tls__tls-null.pcapng", keylog=[key_log]).messages).to_pylist()

    assert [(row["kind"], row["variant"], row["payload_bytes"]) for row in rows if row["protocol"] == "http"] == [
        ("Request", "GET", 0),
        ("Response", "200", 0),
        ("Content", "", 1597),
    ]
