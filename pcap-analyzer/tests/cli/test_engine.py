"""The tshark engine on the command line: secrets that fit, do not fit or are cut off; a tool missing or too old; tshark's own options."""

from __future__ import annotations

import functools
import gzip
import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from places import CAPTURES

import pcapstat
from pcapstat import _native, crosscheck
from pcapstat.engines.tshark import rule_of_wireshark

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


def version() -> str:
    """Return tshark's version as it tells it: "TShark (Wireshark) 4.0.17 (Git …)"."""
    return subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True).stdout.split()[2].rstrip(".")


def test_figures_tell_which_tshark_they_are_from() -> None:
    """Trap 72: what is shown of a capture depends on the version; the native engine has none to tell."""
    assert f"engine: tshark {version()} (secrets" in " ".join(run("summarize", TLS).stdout.split())
    assert summary("--engine", "native", CAPTURES / "a-hivemq-qos0.pcapng")["engine"] == {
        "name": "native",
        "reason": "as asked for",
        "version": None,
    }


def notes(told: dict[str, object]) -> list[tuple[str, str]]:
    """Name and text of all notes."""
    sessions = told["sessions"]
    assert isinstance(sessions, list)
    return [(note["note"], note["text"]) for session in sessions for note in session["notes"]]


def test_embedded_secrets_are_used_unasked_and_the_engine_is_told() -> None:
    """The default engine opens what the capture itself has the secrets of."""
    told = summary(TLS)
    assert told["engine"] == {"name": "tshark", "reason": "secrets are embedded in the capture", "version": version()}
    assert data_messages(told) == publishes()


def test_a_key_log_opens_a_capture_without_secrets(bare: Path) -> None:
    """By --keylog and by SSLKEYLOGFILE, with the same figures as by embedded secrets."""
    assert data_messages(summary("--keylog", TLS_KEYS, bare)) == publishes()
    by_variable = json.loads(run("summarize", "--format", "json", bare, SSLKEYLOGFILE=str(TLS_KEYS)).stdout)
    assert by_variable["engine"] == {"name": "tshark", "reason": "SSLKEYLOGFILE names a key log", "version": version()}
    assert data_messages(by_variable) == publishes()


def test_a_variable_that_names_no_file_yet_changes_nothing(bare: Path, tmp_path: Path) -> None:
    """A program writes the file that SSLKEYLOGFILE names when it has a secret."""
    done = run("summarize", "--format", "json", bare, SSLKEYLOGFILE=str(tmp_path / "none.keys"))
    assert json.loads(done.stdout)["engine"]["name"] == "native"


def test_a_packed_key_log_cut_short_is_one_line(bare: Path, tmp_path: Path) -> None:
    """The checksum is missing (RFC 1952 §2.3.1): exit code 3 and how to have what is there."""
    keys = tmp_path / "cut.keys.gz"
    keys.write_bytes(gzip.compress(TLS_KEYS.read_bytes())[:300])
    done = run("summarize", "--keylog", keys, bare)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert f"gzip -dc {keys}" in done.stderr


@pytest.mark.parametrize(("option", "said"), [("--rsa-key", "PEM"), ("--keylog", "CLIENT_RANDOM")])
def test_a_file_that_holds_no_secret_is_refused(bare: Path, tmp_path: Path, option: str, said: str) -> None:
    """A capture instead of a key, or no file at all: exit code 2 and what is expected."""
    wrong = run("summarize", option, bare, bare)
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)
    assert said in wrong.stderr
    none = run("summarize", option, tmp_path / "none", bare)
    assert (none.returncode, none.stdout, none.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("words", [("--keylog", TLS_KEYS), ("-Y", "mqtt"), ("--psk", "00")])
def test_the_native_engine_takes_no_secrets(words: tuple[str | Path, ...]) -> None:
    """What it could not use is a usage error, whatever it is."""
    done = run("summarize", "--engine", "native", *words, TLS)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "leave --engine native out" in done.stderr


@pytest.mark.parametrize("content", ["", "PSK x 00\n", "CLIENT_RANDOM 00 11\n", (CAPTURES / "a-hivemq-tls-qos1.keys").read_text()])
def test_keys_that_do_not_fit_leave_figures_and_a_note(bare: Path, tmp_path: Path, content: str) -> None:
    """Wrong keys, and those of another session: sizes and times are there, the note says why no more."""
    keys = tmp_path / "wrong.keys"
    keys.write_text(content)
    told = summary("--keylog", keys, bare)
    assert data_messages(told) == 0
    assert any(note == "encrypted" and "tshark opens it with no secret that was given" in text for note, text in notes(told))
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


def standing_in(tmp_path: Path, what: str) -> dict[str, str]:
    """Return the environment in which tshark is a script that does something else with a capture."""
    script = tmp_path / "tshark"
    real = shutil.which("tshark")
    script.write_text(f'#!/bin/sh\ncase "$*" in --version|*/empty.pcap*) exec {real} "$@";; esac\n{what.format(real=real)}\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"PCAPSTAT_TSHARK": str(script)}


def test_tshark_looks_up_no_names_and_has_a_configuration_of_its_own(tmp_path: Path) -> None:
    """Traps 71, 72: -n, and a folder for preferences and one for plugins that are not the user's."""
    told = tmp_path / "told"
    script = f'echo "$WIRESHARK_CONFIG_DIR" "$HOME" "$@" >> {told}\nexec {{real}} "$@"'
    done = run("summarize", "--format", "json", TLS, **standing_in(tmp_path, script))
    assert data_messages(json.loads(done.stdout)) == publishes()
    for line in told.read_text().splitlines():
        configuration, home, *words = line.split()
        assert "-n" in words
        assert configuration == home != os.environ["HOME"]


def test_a_tool_that_crashes_is_one_line(tmp_path: Path) -> None:
    """Trap 73: dissectors crash now and then; it is tshark's process that ends."""
    done = run("summarize", TLS, **standing_in(tmp_path, "kill -SEGV $$"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, "", 1)
    assert "SIGSEGV" in done.stderr


def test_a_missing_tool_is_one_line(tmp_path: Path) -> None:
    """Asked for: exit code 5. Only useful: the native engine does what it can and says so."""
    gone = {"PCAPSTAT_TSHARK": str(tmp_path / "tshark")}
    asked = run("summarize", "--engine", "tshark", TLS, **gone)
    assert (asked.returncode, asked.stdout, asked.stderr.count("\n")) == (5, "", 1)
    useful = run("summarize", TLS, "--format", "json", **gone)
    assert useful.returncode == 0
    assert json.loads(useful.stdout)["engine"]["name"] == "native"
    page = " ".join(run("summarize", TLS, **gone).stdout.split())
    assert "engine: native (secrets are embedded in the capture, but " in page
    assert "no such program" in page
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-o", "no.such:thing"), '-o flag "no.such:thing" specifies unknown preference'),
        (("-Y", "foo bar baz"), '"bar" was unexpected in this context.'),
        (("-X", "lua_script:none.lua"), 'The file "none.lua" doesn\'t exist.'),
        (("-X", "foo"), "-X foo: no extension option"),
        (("--profile", "no such profile"), 'Configuration Profile "no such profile" does not exist'),
    ],
)
def test_an_option_that_tshark_refuses_is_one_line(words: tuple[str, str], said: str) -> None:
    """A usage error, in tshark's words (4.0.17)."""
    done = run("summarize", *words, TLS)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


@pytest.mark.parametrize(
    ("rule", "wiresharks"),
    [
        ("tcp.port==5683,coap_tcp", "tcp.port==5683,coap"),
        ("tcp.port==5683,none", "tcp.port==5683,data"),
        ("udp.port==7,mqttsn", "udp.port==7,mqttsn"),
        ("tcp.port==5683,framed", None),
        ("udp.port==443,quic_frames", None),
    ],
)
def test_rules_of_the_core_are_told_to_tshark_in_its_names(rule: str, wiresharks: str | None) -> None:
    """Every name of -d works with either engine; the names of Wireshark's are in tshark's list of the table."""
    assert rule_of_wireshark(rule) == wiresharks
    if wiresharks:
        table, _, name = wiresharks.partition(",")
        listed = subprocess.run(["tshark", "-d", f"{table},help"], capture_output=True, text=True, check=False).stderr
        assert f"\t{name} (" in listed
    assert data_messages(summary("-d", rule, TLS)) == publishes()


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


@pytest.mark.parametrize("engine", ["auto", "tshark"])
def test_a_named_pipe_is_read_once(tmp_path: Path, engine: str) -> None:
    """As standard input is: the native engine says that it left the secrets unused, tshark's uses them."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(TLS.read_bytes(),), daemon=True)
    writer.start()
    told = summary("--engine", engine, pipe)
    writer.join(10)
    by_input = summary("--engine", engine, "-", stdin=TLS.read_bytes())
    assert told["engine"] == by_input["engine"]
    assert data_messages(told) == data_messages(by_input) == (publishes() if engine == "tshark" else 0)
    assert ("used by --engine tshark only" in str(told["engine"])) == (engine == "auto")


def test_secrets_behind_the_first_frame_are_named(tmp_path: Path) -> None:
    """A capture is searched to its first frame (block types of draft-ietf-opsawg-pcapng §4); what the pass meets later is told."""
    blocks, data = [], TLS.read_bytes()
    while data:
        (length,) = struct.unpack_from("<I", data, 4)
        blocks.append(data[:length])
        data = data[length:]
    section, interface, secrets, frame, *others = blocks
    late = tmp_path / "late.pcapng"
    late.write_bytes(b"".join([section, interface, frame, secrets, *others]))
    told = summary(late)
    assert "used by --engine tshark only" in str(told["engine"])
    assert data_messages(summary("--engine", "tshark", late)) == publishes()


def test_one_file_of_several_that_cannot_be_read_stops_nothing(bare: Path, tmp_path: Path) -> None:
    """Figures of the others, and a line that names it; the same with a file that is no capture."""
    (tmp_path / "text").write_text("no capture")
    done = run("summarize", "--format", "json", "--keylog", TLS_KEYS, bare, tmp_path / "none", tmp_path / "text")
    assert (done.returncode, done.stderr.count("\n")) == (4, 2)
    assert f"{tmp_path / 'none'}: no such file" in done.stderr
    assert data_messages(json.loads(done.stdout)) == publishes()
    nothing = run("summarize", "--keylog", TLS_KEYS, tmp_path / "none", tmp_path / "text")
    assert (nothing.returncode, nothing.stdout, nothing.stderr.count("\n")) == (3, "", 1)


def test_secrets_of_a_later_file_are_found() -> None:
    """The first file has none."""
    told = summary(CAPTURES / "a-hivemq-qos0.pcapng", TLS)
    assert data_messages(told) == publishes() + publishes(CAPTURES / "a-hivemq-qos0.pcapng")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_capture_cut_short_is_opened_as_far_as_it_goes(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Figures, the line about the damage, exit code 4; the messages are those of the frames that editcap finds whole."""
    cut, whole = tmp_path / "cut.pcapng", tmp_path / "whole.pcapng"
    data = pack(TLS.read_bytes())
    cut.write_bytes(data[: len(data) * 2 // 3])
    subprocess.run(["editcap", cut, whole], check=True, capture_output=True)
    done = run("summarize", "--format", "json", cut)
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
    assert "cut short" in done.stderr
    told = json.loads(done.stdout)
    assert told["engine"]["name"] == "tshark"
    assert 0 < data_messages(told) == publishes(whole) < publishes()
    assert run("messages", "--format", "csv", "-O", tmp_path / "x.csv", cut).returncode == 4


def test_secrets_are_embedded_and_extracted(bare: Path, tmp_path: Path) -> None:
    """What was embedded comes out again and opens the capture; where there are none, one line says so."""
    whole = tmp_path / "whole.pcapng"
    assert run("secrets", "embed", "--keylog", TLS_KEYS, "-O", whole, bare).returncode == 0
    extracted = run("secrets", "extract", whole)
    assert extracted.stdout.split() == TLS_KEYS.read_text().split()
    assert data_messages(summary(whole)) == publishes()
    # once more into what has some already; and into what editcap wrote, which it does not read itself
    assert run("secrets", "embed", "--keylog", TLS_KEYS, "-O", tmp_path / "twice.pcapng", whole).returncode == 0
    injected = tmp_path / "injected.pcapng"
    subprocess.run(["editcap", "--inject-secrets", f"tls,{TLS_KEYS}", bare, injected], check=True)
    assert run("secrets", "embed", "--keylog", TLS_KEYS, "-O", tmp_path / "again.pcapng", injected).returncode == 0
    other = CAPTURES / "a-hivemq-qos0.pcapng"
    assert data_messages(summary(injected, other)) == publishes() + publishes(other)
    none = run("secrets", "extract", bare)
    assert (none.returncode, none.stdout, none.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("capture", [path.with_suffix(".pcapng") for path in sorted(CAPTURES.glob("*.keys"))], ids=lambda path: path.stem)
def test_editcap_can_write_the_recordings_again(capture: Path, tmp_path: Path) -> None:
    """A comment can be added, as docs/how-to/archives.md does; the secrets come along."""
    subprocess.run(["editcap", "--capture-comment", "qos=1", capture, tmp_path / "x.pcapng"], check=True)
    assert _native.embedded_secrets([str(tmp_path / "x.pcapng")]) == _native.embedded_secrets([str(capture)])


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
