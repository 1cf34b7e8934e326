"""The tshark engine on the command line: secrets that fit, do not fit or are cut off; a tool missing or too old; tshark's own options."""

from __future__ import annotations

import functools
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from places import CAPTURES

import pcapstat
from pcapstat import crosscheck

TLS = CAPTURES / "a-paho-tls-qos1.pcapng"
TLS_KEYS = CAPTURES / "a-paho-tls-qos1.keys"
DTLS = CAPTURES / "a-californium-dtls-con.pcapng"


def run(*arguments: str | Path, stdin: bytes | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pcapstat as a user does."""
    words = [sys.executable, "-c", "from pcapstat.cli import main; main()", *map(str, arguments)]
    done = subprocess.run(words, input=stdin, capture_output=True, check=False, env={**os.environ, **environment})
    return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())


def summary(*arguments: str | Path, stdin: bytes | None = None) -> dict[str, object]:
    """Return the summary as JSON."""
    done = run("summarize", "--format", "json", *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    told: dict[str, object] = json.loads(done.stdout)
    return told


def data_messages(told: dict[str, object]) -> int:
    """Sum the data messages of all sessions."""
    sessions = told["sessions"]
    assert isinstance(sessions, list)
    return sum(session["data_messages"] for session in sessions)


@functools.cache
def publishes(path: Path = TLS) -> int:
    """Count the PUBLISH packets that tshark shows in a capture."""
    words = ["tshark", "-r", str(path), "-Y", "mqtt.msgtype == 3", "-T", "fields", "-e", "mqtt.msgtype"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return sum(word == "3" for word in told.replace("\n", ",").split(","))


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Return the recording with TLS without the secrets embedded in it."""
    return crosscheck.without_secrets(TLS, tmp_path)


def notes(told: dict[str, object]) -> list[tuple[str, str]]:
    """Name and text of all notes."""
    sessions = told["sessions"]
    assert isinstance(sessions, list)
    return [(note["note"], note["text"]) for session in sessions for note in session["notes"]]


def test_embedded_secrets_are_used_unasked_and_the_engine_is_told() -> None:
    """The default engine opens what the capture itself has the secrets of."""
    told = summary(TLS)
    assert told["engine"] == {"name": "tshark", "reason": "secrets are embedded in the capture"}
    assert data_messages(told) == publishes()


def test_a_key_log_opens_a_capture_without_secrets(bare: Path) -> None:
    """By --keylog and by SSLKEYLOGFILE, with the same figures as by embedded secrets."""
    assert data_messages(summary("--keylog", TLS_KEYS, bare)) == publishes()
    by_variable = run("summarize", "--engine", "tshark", "--format", "json", bare, SSLKEYLOGFILE=str(TLS_KEYS))
    assert data_messages(json.loads(by_variable.stdout)) == publishes()


@pytest.mark.parametrize("content", ["", "PSK x 00\n", "CLIENT_RANDOM 00 11\n", (CAPTURES / "a-hivemq-tls-qos1.keys").read_text()])
def test_keys_that_do_not_fit_leave_figures_and_a_note(bare: Path, tmp_path: Path, content: str) -> None:
    """Wrong keys, and those of another session: sizes and times are there, the note says why no more."""
    keys = tmp_path / "wrong.keys"
    keys.write_text(content)
    told = summary("--keylog", keys, bare)
    assert data_messages(told) == 0
    assert any(note == "encrypted" and "no secret that was given opens it" in text for note, text in notes(told))
    assert all(session["overhead_bytes"] > 0 for session in told["sessions"])  # type: ignore[attr-defined]


def test_a_key_log_cut_off_opens_what_it_can(bare: Path, tmp_path: Path) -> None:
    """Half a key log: the sessions whose secrets are whole are opened, the others keep their note."""
    keys = tmp_path / "cut.keys"
    lines = [line for line in TLS_KEYS.read_text().splitlines(keepends=True) if line.strip() and not line.startswith("#")]
    client = lines[0].split()[1]
    keys.write_text("".join(line for line in lines if client in line) + lines[-1][:40])
    told = summary("--keylog", keys, bare)
    assert 0 < data_messages(told) < publishes()
    assert any(note == "encrypted" for note, _ in notes(told))


def test_a_pre_shared_key_opens_dtls(tmp_path: Path) -> None:
    """As hexadecimal digits; text that is none is refused with the remedy."""
    key = next(line.split()[2] for line in DTLS.with_suffix(".keys").read_text().splitlines() if line.startswith("PSK"))
    told = summary("--psk", key, "--stop-after", "100", crosscheck.without_secrets(DTLS, tmp_path))
    assert data_messages(told) == 100
    refused = run("summarize", "--psk", "secret!", DTLS)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "hexadecimal" in refused.stderr


def test_plugins_of_the_user_are_left_out(tmp_path: Path) -> None:
    """A Lua plugin in the personal folder that takes our protocol's name changes nothing."""
    folder = tmp_path / ".local" / "lib" / "wireshark" / "plugins"
    folder.mkdir(parents=True)
    (folder / "taken.lua").write_text(
        'local taken = Proto("pcapstat", "Taken")\nfunction taken.dissector() end\nregister_postdissector(taken)\n'
    )
    done = run("summarize", "--format", "json", TLS, HOME=str(tmp_path))
    assert data_messages(json.loads(done.stdout)) == publishes()


def test_a_missing_tool_is_one_line(tmp_path: Path) -> None:
    """Asked for: exit code 5. Only useful: the native engine does what it can and says so."""
    gone = {"PCAPSTAT_TSHARK": str(tmp_path / "tshark")}
    asked = run("summarize", "--engine", "tshark", TLS, **gone)
    assert (asked.returncode, asked.stdout, asked.stderr.count("\n")) == (5, "", 1)
    useful = run("summarize", TLS, "--format", "json", **gone)
    assert useful.returncode == 0
    assert json.loads(useful.stdout)["engine"]["name"] == "native"
    checked = run("crosscheck", TLS, **gone)
    assert (checked.returncode, checked.stderr.count("\n")) == (5, 1)


def test_a_tool_that_is_too_old_is_one_line(tmp_path: Path) -> None:
    """A tshark 3.6 is refused with the remedy."""
    old = tmp_path / "tshark"
    old.write_text("#!/bin/sh\necho 'TShark (Wireshark) 3.6.2 (Git v3.6.2)'\n")
    old.chmod(old.stat().st_mode | stat.S_IXUSR)
    done = run("summarize", "--engine", "tshark", TLS, PCAPSTAT_TSHARK=str(old))
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert "3.6.2" in done.stderr
    assert "4.0" in done.stderr


def test_a_tool_that_runs_no_lua_is_one_line(tmp_path: Path) -> None:
    """Run by root, tshark 4.4 knows no field of ours (its words); the remedy is told."""
    script = tmp_path / "tshark"
    told = "tshark: Some fields aren't valid:\n\tpcapstat"
    version = "TShark (Wireshark) 4.4.18."
    script.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{version}"; else printf "{told}\\n" >&2; exit 1; fi\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    done = run("summarize", "--engine", "tshark", TLS, PCAPSTAT_TSHARK=str(script))
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert "run_user_scripts_when_superuser = true" in done.stderr


def test_an_option_that_tshark_refuses_is_one_line() -> None:
    """What tshark complains of is told, not a traceback."""
    done = run("summarize", "-o", "no.such:thing", TLS)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, "", 1)


def test_a_display_filter_leaves_frames_out() -> None:
    """-Y in tshark's words: only the frames that pass it count; those left out are named."""
    told = summary("-Y", "tcp.stream == 1", TLS)
    sessions = told["sessions"]
    assert isinstance(sessions, list)
    assert [session["filter"] for session in sessions] == ["tcp.stream eq 1"]
    others = told["others"]
    assert isinstance(others, list)
    assert {other["protocol"] for other in others} == {"filtered", "arp"}


def test_standard_input_and_several_files_are_read_by_both() -> None:
    """The engine keeps standard input for tshark, and merges several files."""
    several = summary("--engine", "tshark", TLS, CAPTURES / "a-hivemq-qos0.pcapng")
    assert data_messages(several) == publishes() + publishes(CAPTURES / "a-hivemq-qos0.pcapng")
    by_pipe = summary("--engine", "tshark", "-", stdin=TLS.read_bytes())
    assert data_messages(by_pipe) == publishes()


def test_secrets_are_embedded_and_extracted(bare: Path, tmp_path: Path) -> None:
    """What was embedded comes out again and opens the capture; where there are none, one line says so."""
    whole = tmp_path / "whole.pcapng"
    assert run("secrets", "embed", "--keylog", TLS_KEYS, "-O", whole, bare).returncode == 0
    extracted = run("secrets", "extract", whole)
    assert extracted.stdout.split() == TLS_KEYS.read_text().split()
    assert data_messages(summary(whole)) == publishes()
    none = run("secrets", "extract", bare)
    assert (none.returncode, none.stdout, none.stderr.count("\n")) == (2, "", 1)


def test_crosscheck_says_where_the_engines_differ() -> None:
    """0 where all agree; 1 and the frame where one says something else."""
    assert run("crosscheck", CAPTURES / "c-aiocoap-get.pcapng").returncode == 0
    # told not to put segments together, tshark does not see the messages that need several
    split = CAPTURES / "d-paho-python-qos1-10kb.pcapng"
    done = run("crosscheck", "--engine", "tshark", "-o", "tcp.desegment_tcp_streams:FALSE", "--format", "csv", split)
    assert done.returncode == 1
    assert '"mqtt",0,"","messages"' in done.stdout


KEYED = [path for path in sorted(CAPTURES.glob("*.keys")) if "aiocoap-dtls" not in path.name and "cid" not in path.name]


@pytest.mark.parametrize("keys", KEYED, ids=lambda path: path.stem)
def test_what_was_opened_is_what_tshark_shows(keys: Path) -> None:
    """Every field of the messages inside TLS, DTLS, QUIC and OSCORE is the same in tshark's dissection."""
    found = list(crosscheck.differences(pcapstat.open(keys.with_suffix(".pcapng"), keylog=[str(keys)])))
    assert [difference for difference in found if difference.explanation is None] == []


def test_field_sections_are_as_long_as_tshark_says() -> None:
    """HPACK: names and values before compression, summed over http2.header.name.length and .value.length."""
    capture = CAPTURES / "c-http2.pcapng"
    words = [
        "tshark",
        "-r",
        str(capture),
        "-Y",
        "http2",
        "-T",
        "fields",
        "-e",
        "http2.header.name.length",
        "-e",
        "http2.header.value.length",
    ]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    expected = sum(int(number) for number in told.replace("\t", ",").replace("\n", ",").split(",") if number)
    (session,) = pcapstat.open(capture).summary().sessions
    assert session.field_section_bytes == expected
    assert 0 < session.field_block_bytes < expected
