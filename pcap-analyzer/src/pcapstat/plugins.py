"""The Lua dissectors in Wireshark's personal folders: installs and removes them, says whether they load; never touches what is not ours."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from pcapstat import wireshark
from pcapstat.errors import OutputError, ToolMissing

SOURCE = Path(__file__).with_name("dissectors")
"""The dissectors as they come with the package."""
PROFILE = "pcapstat"
MANIFEST = Path("pcapstat") / "installed.json"
"""What was installed, by path below the plugin folder, with its SHA-256."""
LOADS_NOTHING_FOR_ROOT = (4, 4)
"""The version of tshark since which that is so, unless a file of the system says otherwise."""


@dataclass(frozen=True)
class Dissector:
    """A dissector: its file, its protocol in Wireshark, what it shows."""

    file: str
    protocol: str
    about: str


DISSECTORS = (
    Dissector(
        "pcapstat_overhead.lua", "pcapstat_overhead", "bytes by layer of each frame and message, and what the standards say they weigh"
    ),
    Dissector("pcapstat_exchange.lua", "pcapstat_exchange", "requests with responses, QoS flows, deliveries; rules that a message breaks"),
    Dissector("pcapstat_session.lua", "pcapstat_session", "ΔTime, goodput, throughput, overhead so far; the table of sessions"),
    Dissector("hi_payload.lua", "hi_payload", "numbered test payloads: lost, twice, late"),
    Dissector("hl7_payload.lua", "hl7_payload", "HL7 version 2: segments and fields"),
)


@dataclass(frozen=True)
class State:
    """A dissector's file in the plugin folder: "as shipped", "older or changed", or "not installed"."""

    dissector: Dissector
    installed: str


def plugin_folder() -> Path:
    """Return Wireshark's personal folder for Lua plugins. Raises ToolMissing where tshark names none."""
    return folder("Personal Lua Plugins")


def folder(name: str) -> Path:
    """Return one of the folders that tshark names. Raises ToolMissing where it names none."""
    wireshark.version(wireshark.find())
    found = wireshark.folders().get(name)
    if found is None:
        raise ToolMissing(f"tshark names no folder {name!r}: it was built without Lua (install Wireshark's own packages)")
    return found


def shipped() -> dict[Path, bytes]:
    """Return the content of each Lua file, by its path below the plugin folder."""
    files = sorted([*SOURCE.glob("*.lua"), *SOURCE.glob("pcapstat/*.lua")])
    return {file.relative_to(SOURCE): file.read_bytes() for file in files}


def profile_files() -> dict[Path, bytes]:
    """Return the content of the profile's files, by their path below the folder of configurations."""
    files = sorted((SOURCE / "profile" / PROFILE).iterdir())
    return {Path("profiles") / PROFILE / file.name: file.read_bytes() for file in files}


def digest(content: bytes) -> str:
    """Return a content's SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def recorded(target: Path) -> dict[str, str]:
    """Return what was installed below a folder, with its SHA-256."""
    try:
        known: dict[str, str] = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known


def is_ours(path: Path, name: Path, known: dict[str, str], content: bytes) -> bool:
    """Whether a file is not there, or is as it was installed, or is what would be installed."""
    if not path.exists():
        return True
    return digest(path.read_bytes()) in {known.get(name.as_posix()), digest(content)}


def put(target: Path, files: dict[Path, bytes]) -> list[Path]:
    """Write files below a folder and record them. Raises OutputError, before writing, where one would replace a file of others."""
    known = recorded(target)
    foreign = [name for name, content in files.items() if not is_ours(target / name, name, known, content)]
    if foreign:
        raise OutputError(f"{target / foreign[0]}: not as pcapstat installed it, so it is not replaced (move it away, then install again)")
    written = []
    try:
        for name, content in files.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            written.append(path)
        (target / MANIFEST).parent.mkdir(parents=True, exist_ok=True)
        (target / MANIFEST).write_text(
            json.dumps({name.as_posix(): digest(content) for name, content in files.items()}, indent=1) + "\n", encoding="utf-8"
        )
    except OSError as error:
        raise OutputError(f"{error.filename}: {error.strerror} (make the folder writable)") from None
    return written


def take_away(target: Path) -> tuple[list[Path], list[Path]]:
    """Remove what was installed below a folder. Returns the files removed, and those left because they were changed since."""
    removed, left = [], []
    for name, sha256 in recorded(target).items():
        path = target / name
        if not path.is_file():
            continue
        if digest(path.read_bytes()) == sha256:
            path.unlink()
            removed.append(path)
        else:
            left.append(path)
    (target / MANIFEST).unlink(missing_ok=True)
    for inner in sorted({path.parent for path in (*removed, target / MANIFEST)} - {target}):
        if inner.is_dir() and not any(inner.iterdir()):
            inner.rmdir()
    return removed, left


def install(*, with_profile: bool) -> list[Path]:
    """Install the dissectors, and the profile where it is asked for. Returns the files written."""
    written = put(plugin_folder(), shipped())
    return [*written, *put(folder("Personal configuration"), profile_files())] if with_profile else written


def uninstall() -> tuple[list[Path], list[Path]]:
    """Remove dissectors and profile. Returns the files removed, and those left because they were changed since."""
    removed, left = take_away(plugin_folder())
    removed_too, left_too = take_away(folder("Personal configuration"))
    return [*removed, *removed_too], [*left, *left_too]


def hindrance() -> str | None:
    """Return why tshark loads no personal plugins, where it is of a version and run by a user for whom it does not."""
    is_root = getattr(os, "geteuid", lambda: None)() == 0
    if not is_root or wireshark.version(wireshark.find()) < LOADS_NOTHING_FOR_ROOT:
        return None
    return (
        "tshark 4.4 and newer loads no personal plugins for root (run it as another user, or write run_user_scripts_when_superuser = true "
        'and package.path = Dir.personal_plugins_path() .. "/?.lua;" .. package.path into the file init.lua of the global plugin folder '
        "that `tshark -G folders` names)"
    )


def states() -> list[State]:
    """Return how each dissector stands in the plugin folder."""
    target = plugin_folder()
    found = []
    for dissector in DISSECTORS:
        path = target / dissector.file
        is_same = path.is_file() and path.read_bytes() == (SOURCE / dissector.file).read_bytes()
        found.append(State(dissector, "as shipped" if is_same else "older or changed" if path.is_file() else "not installed"))
    return found


def loaded(environment: dict[str, str] | None = None) -> tuple[set[str], str]:
    """Return the protocols of ours that tshark knows with its plugins loaded, and what Lua complained of."""
    done = wireshark.ran([wireshark.find(), "-G", "protocols"], environment=environment or dict(os.environ), timeout_s=120)
    # name, short name, filter name; since 4.4 more behind them
    names = {name for line in done.stdout.splitlines() for name in line.split("\t")[2:3]}
    complaints = [line for line in (done.stdout + done.stderr).splitlines() if re.search(r"\blua\b|pcapstat:", line, re.IGNORECASE)]
    known = {dissector.protocol for dissector in DISSECTORS} & names
    return known, "\n".join(line for line in complaints if "\t" not in line)
