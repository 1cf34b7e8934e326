"""The tshark engine: the command that opens what is encrypted. Its PDML is read by the core, which cuts and pairs the messages in it."""

from __future__ import annotations

import gzip
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pcapstat import wireshark
from pcapstat.engines import Secrets, Tshark
from pcapstat.errors import ToolMissing, UnreadableCapture, UsageError

CONTENTS = Path(__file__).with_name("contents.lua")
GIVEN = (
    # segments out of order are put in order, as the core does; the default of tshark is not to
    "tcp.reassemble_out_of_order:TRUE",
    "tcp.desegment_tcp_streams:TRUE",
    "tls.desegment_ssl_records:TRUE",
    "tls.desegment_ssl_application_data:TRUE",
)


class Run:
    """One capture to be read with tshark's help: the file that both read, and tshark's command."""

    def __init__(self, paths: Sequence[str], decode_as: Sequence[str], secrets: Secrets, words: Tshark) -> None:
        """Prepare it: standard input and several files become one file in a folder of ours, which goes when the run does."""
        tshark = wireshark.find()
        wireshark.version(tshark)
        self.folder = tempfile.TemporaryDirectory(prefix="pcapstat-")
        self.path = self.one_file(list(paths))
        self.name = None if list(paths) == [self.path] else ", ".join(paths)
        self.command = [*self.environment(words), tshark, *self.arguments(decode_as, secrets, words)]

    def one_file(self, paths: list[str]) -> str:
        """Return the file that holds the capture."""
        if paths == ["-"]:
            return self.spool()
        if len(paths) == 1:
            return paths[0]
        target = str(Path(self.folder.name) / "merged.pcapng")
        done = subprocess.run([wireshark.find("mergecap"), "-w", target, *paths], capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnreadableCapture(f"{paths[0]}: {done.stderr.strip().splitlines()[-1]} (merge the files by hand with mergecap)")
        return target

    def spool(self) -> str:
        """Keep standard input in a file, since two programs read it."""
        target = Path(self.folder.name) / "stdin"
        with target.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return str(target)

    def environment(self, words: Tshark) -> list[str]:
        """Return tshark's configuration folder: an empty one of ours, or the user's own where a profile of it is asked for.

        The folder of the user's plugins is below HOME.
        """
        return [] if words.profile else [f"WIRESHARK_CONFIG_DIR={self.folder.name}", f"HOME={self.folder.name}"]

    def arguments(self, decode_as: Sequence[str], secrets: Secrets, words: Tshark) -> list[str]:
        """Return tshark's arguments."""
        preferences = [*GIVEN, *opening(secrets, Path(self.folder.name)), *words.preferences]
        options = [word for preference in preferences for word in ("-o", preference)]
        options += [word for rule in decode_as for word in ("-d", rule)]
        options += [word for extension in words.extensions for word in ("-X", extension)]
        options += ["-C", words.profile] if words.profile else []
        options += ["-Y", words.display_filter] if words.display_filter else []
        return ["-n", "-r", self.path, "-X", f"lua_script:{CONTENTS}", "-T", "pdml", "-j", "pcapstat", *options]


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
    preferences += [f'uat:rsa_keys:"{Path(key).resolve()}",""' for key in secrets.rsa_key]
    preferences += [oscore_context(context) for context in secrets.oscore]
    logs = [*secrets.keylog, *([os.environ["SSLKEYLOGFILE"]] if "SSLKEYLOGFILE" in os.environ else [])]
    lines = [line for log in logs for line in key_log(log)]
    for line in lines:
        preferences += from_line(line)
    if lines:
        whole = folder / "keys.log"
        whole.write_text("\n".join(lines) + "\n")
        preferences.append(f"tls.keylog_file:{whole}")
    return preferences


def key_log(path: str) -> list[str]:
    """Read a key log file (NSS key log format, one secret a line; gz too)."""
    try:
        data = Path(path).read_bytes()
        text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror} (name a key log file with --keylog)") from None
    return text.decode("utf-8", "replace").splitlines()


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
