"""The tshark engine: the command that opens what is encrypted. Its PDML is read by the core, which cuts and pairs the messages in it."""

from __future__ import annotations

import gzip
import re
import shlex
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from pcapstat import _native, wireshark
from pcapstat.engines import Secrets, Tshark
from pcapstat.errors import ToolMissing, UnreadableCapture, UsageError
from pcapstat.spool import is_read_once, keep

CONTENTS = Path(__file__).with_name("contents.lua")
GIVEN = (
    # segments out of order are put in order, as the core does; the default of tshark is not to
    "tcp.reassemble_out_of_order:TRUE",
    "tcp.desegment_tcp_streams:TRUE",
    "tls.desegment_ssl_records:TRUE",
    "tls.desegment_ssl_application_data:TRUE",
)

GUESSED_WRONG = ("rf4ce_nwk",)
"""Dissectors that guess by too little: tshark 4.4 takes 6LoWPAN headers for remote controls. A version passes over unknown names."""


class Run:
    """One capture to be read with tshark's help: the file that both read, those that cannot be read, and tshark's command."""

    def __init__(self, paths: Sequence[str], decode_as: Sequence[str], secrets: Secrets, words: Tshark) -> None:
        """Prepare it: pipes and several files become one file in a folder of ours, which goes when the run does."""
        tshark = wireshark.find()
        self.version = ".".join(map(str, wireshark.version(tshark)))
        self.folder = tempfile.TemporaryDirectory(prefix="pcapstat-")
        (Path(self.folder.name) / "heuristic_protos").write_text("".join(f"{name},0\n" for name in GUESSED_WRONG))
        files = [(path, self.at_hand(path, number)) for number, path in enumerate(paths)]
        readable = [(path, file) for path, file in files if can_be_read(file)] or files[:1]
        self.unreadable = [file for path, file in files if (path, file) not in readable]
        self.path = self.one_file([file for _, file in readable])
        names = [path for path, _ in readable]
        self.name = None if names == [self.path] else ", ".join(names)
        self.command = [*self.environment(words), tshark, *self.arguments(decode_as, secrets, words)]
        if words:
            try_words(self.command, words, Path(self.folder.name))

    def at_hand(self, path: str, number: int) -> str:
        """Return the file to read for a path: of a pipe a copy, since two programs read it."""
        if not is_read_once(path):
            return path
        target = str(Path(self.folder.name) / f"pipe-{number}")
        keep(path, target)
        return target

    def one_file(self, paths: list[str]) -> str:
        """Return the file that holds the capture."""
        if len(paths) == 1:
            return paths[0]
        target = str(Path(self.folder.name) / "merged.pcapng")
        inputs = [wireshark.rewritable(path, Path(self.folder.name) / f"input-{number}") for number, path in enumerate(paths)]
        done = wireshark.ran([wireshark.find("mergecap"), "-w", target, *inputs])
        if done.returncode:
            said = done.stderr.strip().splitlines()[-1]
            raise UnreadableCapture(f"{', '.join(paths)}: {said} (write what is whole of it to another file: editcap OLD NEW)")
        return target

    def environment(self, words: Tshark) -> list[str]:
        """Return tshark's configuration folder: an empty one of ours, or the user's own where a profile of it is asked for.

        The folder of the user's plugins is below HOME.
        """
        return [] if words.profile else [f"WIRESHARK_CONFIG_DIR={self.folder.name}", f"HOME={self.folder.name}"]

    def arguments(self, decode_as: Sequence[str], secrets: Secrets, words: Tshark) -> list[str]:
        """Return tshark's arguments."""
        preferences = [*GIVEN, *opening(secrets, Path(self.folder.name)), *words.preferences]
        options = [word for preference in preferences for word in ("-o", preference)]
        options += [word for rule in map(rule_of_wireshark, decode_as) if rule for word in ("-d", rule)]
        options += [word for extension in words.extensions for word in ("-X", extension)]
        options += ["-C", words.profile] if words.profile else []
        options += ["-Y", words.display_filter] if words.display_filter else []
        return ["-n", "-r", self.path, "-X", f"lua_script:{CONTENTS}", "-T", "pdml", "-j", "pcapstat", *options]


def can_be_read(path: str) -> bool:
    """Whether there is a capture in a file, damaged or not."""
    try:
        _native.embedded_secrets([path])
    except _native.NativeError:
        return False
    return True


def rule_of_wireshark(rule: str) -> str | None:
    """Return a rule of -d with Wireshark's name of the protocol; none where Wireshark has no dissector of it for a port."""
    selector, _, name = rule.partition(",")
    if name.strip() in {"none", "data"}:
        return f"{selector},data"
    # what has no port of its own is only found inside of others, or is cut as the user says
    rows = (row for row in _native.protocols() if row["ports"] and name.strip() in {row["decode_as"], row["name"]})
    return next((f"{selector},{row['name']}" for row in rows), None)


EXTENSION = re.compile(r"(lua_script\d*|read_format|stdin_descr):.")
"""What tshark's -X takes (man tshark); all else it passes over in silence."""


def try_words(command: Sequence[str], words: Tshark, folder: Path) -> None:
    """Have tshark read an empty capture with the user's options. Raises UsageError with what it complains of."""
    for extension in words.extensions:
        if not EXTENSION.match(extension):
            raise UsageError(f"-X {extension}: no extension option of tshark's (write for example -X lua_script:FILE)")
    empty = folder / "empty.pcap"
    empty.write_bytes(bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 01000000"))
    arguments, environment = wireshark.split_environment(without_contents(command, str(empty)))
    done = wireshark.ran(arguments, environment=environment)
    complaints = [line.partition("tshark: ")[2] for line in done.stderr.splitlines() if line.startswith("tshark: ")]
    # a script that is missing or wrong is no reason for tshark to fail
    if complaints and (done.returncode or words.extensions):
        raise UsageError(f"tshark refuses its options: {complaints[0].strip()} (man tshark and man wireshark-filter explain them)")


def without_contents(command: Sequence[str], path: str) -> list[str]:
    """Return a run's command as it dissects `path` in full, without our post-dissector."""
    words = list(command)
    at = words.index("-X")
    del words[at : at + 2]
    at = words.index("-j")
    del words[at : at + 2]
    words[words.index("-r") + 1] = path
    return words


def opening(secrets: Secrets, folder: Path) -> list[str]:
    """Return the preferences that hand the secrets to tshark. Raises UsageError where they cannot be read."""
    preferences = [preference for identity in map(psk, secrets.psk) for preference in (f"tls.psk:{identity}", f"dtls.psk:{identity}")]
    preferences += [f'uat:rsa_keys:"{rsa_key(key)}",""' for key in secrets.rsa_key]
    preferences += [oscore_context(context) for context in secrets.oscore]
    lines = [line for log in secrets.key_logs for line in key_log(log)]
    for line in lines:
        preferences += from_line(line)
    if lines:
        whole = folder / "keys.log"
        whole.write_text("\n".join(lines) + "\n", encoding="utf-8")
        preferences.append(f"tls.keylog_file:{whole}")
    return preferences


LABELS = ("CLIENT_", "SERVER_", "EXPORTER_SECRET", "EARLY_EXPORTER_SECRET", "RSA ", "PMS_CLIENT_RANDOM", "QUIC_", "ECH_")
"""First words of lines in a key log (NSS key log format)."""

OUR_LABELS = ("PSK ", "OSCORE ")
"""First words of the lines that captures/README.md adds."""


NO_LINE = "no line of a key log (its lines begin with CLIENT_RANDOM or the like)"


def key_log(path: str) -> list[str]:
    """Read a key log file (NSS key log format, one secret a line; gz too); it may be empty yet.

    Raises UsageError where there is none, or a file that is none, UnreadableCapture where it is damaged.
    """
    try:
        data = Path(path).read_bytes()
        text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UnreadableCapture(f"{path}: the packed key log is cut short or damaged (what is there: gzip -dc {path} > keys.log)") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror} (name a key log file with --keylog)") from None
    lines = text.decode("utf-8", "replace").splitlines()
    told = [line for line in lines if line.strip() and not line.startswith("#")]
    if told and not any(line.startswith(LABELS + OUR_LABELS) for line in told):
        raise UsageError(f"{path}: {NO_LINE}")
    return lines


def rsa_key(path: str) -> Path:
    """Return the whole path of an RSA key file. Raises UsageError where it is none in PEM."""
    try:
        is_key = b"PRIVATE KEY-----" in Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror} (name a key file with --rsa-key)") from None
    if not is_key:
        raise UsageError(f"{path}: no private key in PEM (of DER: openssl rsa -inform DER -in FILE -out server.pem)")
    return Path(path).resolve()


def from_line(line: str) -> list[str]:
    """Preferences for a line that the key log format has no word for, as the recordings of the project have them (captures/README.md)."""
    match line.split():
        case ["PSK", _, key]:
            return [f"tls.psk:{psk(key)}", f"dtls.psk:{psk(key)}"]
        case ["OSCORE", *words]:
            return [oscore_context(" ".join(words))]
    return []


def psk(text: str) -> str:
    """Check a pre-shared key: hexadecimal, as tshark has it."""
    try:
        return bytes.fromhex(text.replace(":", "")).hex()
    except ValueError:
        raise UsageError(f"--psk {text}: no hexadecimal key (of text: printf %s TEXT | xxd -p)") from None


ALGORITHMS = {"AES-CCM-16-64-128": "AES-CCM-16-64-128"}


def oscore_context(text: str) -> str:
    """Return an OSCORE security context (RFC 8613 §3) as tshark's table has it.

    `text` holds words `sender-id=`, `recipient-id=`, `secret=`, `salt=`, `id-context=` in hexadecimal and the algorithm by its name.
    """
    words = dict(word.split("=", 1) for word in shlex.split(text) if "=" in word)
    sender, recipient = words.get("client-id", words.get("sender-id")), words.get("server-id", words.get("recipient-id"))
    if sender is None or recipient is None or "secret" not in words:
        raise UsageError(f"--oscore {text}: no whole context (write sender-id=01 recipient-id=02 secret=0102… salt=9e7c…)")
    cells = (sender, recipient, words["secret"], words.get("salt", ""), words.get("id-context", ""), "AES-CCM-16-64-128 (CCM*)")
    return "uat:oscore_contexts:" + ",".join(f'"{cell}"' for cell in cells)


def require() -> None:
    """Raise ToolMissing where tshark cannot be used."""
    wireshark.version(wireshark.find())


__all__ = ["Run", "ToolMissing", "require"]
