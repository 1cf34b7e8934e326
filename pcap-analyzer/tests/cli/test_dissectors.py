"""pcapstat dissectors: installs into the folders that tshark names, takes away what it installed, and touches nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import CAPTURES, ROOT

from pcapstat import plugins

NAMES = ["pcapstat_overhead.lua", "pcapstat_exchange.lua", "pcapstat_session.lua", "hi_payload.lua", "hl7_payload.lua"]


def called(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with a home folder of its own."""
    words = [sys.executable, "-c", "from pcapstat.cli import main; main()", "dissectors", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "WIRESHARK"))}
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment | {"HOME": str(home)})


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return a home folder with the dissectors installed."""
    assert called(tmp_path, "install").returncode == 0
    return tmp_path


def plugin_folder(home: Path) -> Path:
    """Return the personal plugin folder."""
    return Path(called(home, "path", "--installed").stdout.strip())


def test_what_is_installed_is_loaded(installed: Path) -> None:
    """Tshark loads all of them, and the check says so."""
    done = called(installed, "check")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines() if line.endswith("as shipped        loaded")] == NAMES


def test_installed_together_they_show_what_each_shows_alone(installed: Path) -> None:
    """Loaded by Wireshark from its plugin folder, shared modules among them, each shows its fields."""
    fields = ("pcapstat_overhead.frame_bytes", "pcapstat_exchange.kind", "pcapstat_session.data_messages", "hi_payload.number")
    words = ["tshark", "-n", "-r", str(CAPTURES / "a-californium-con.pcapng"), "-T", "fields", "-Y", "frame.number == 5"]
    environment = os.environ | {"HOME": str(installed)}
    done = subprocess.run(
        [*words, *(word for field in fields for word in ("-e", field))], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.split() == ["68", "notification", "2", "13"]


def test_the_profile_has_our_columns(installed: Path) -> None:
    """The profile can be chosen by its name."""
    words = ["tshark", "-n", "-C", "pcapstat", "-r", str(CAPTURES / "a-californium-con.pcapng"), "-Y", "frame.number == 5"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ | {"HOME": str(installed)})
    assert "coap CON 2.05" in done.stdout


@pytest.mark.parametrize(
    ("version", "user", "is_hindered"), [("4.4.18", 0, True), ("4.4.18", 1000, False), ("4.0.17", 0, False), ("4.6.0", 0, True)]
)
def test_what_newer_versions_tell_is_read(
    version: str, user: int, is_hindered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since 4.4 `tshark -G protocols` has three columns more (as 4.4.18 prints them), and root has no personal plugins."""
    more = "\tT\tT\tT" if version > "4.4" else ""
    lines = [f"pcapstat: exchanges\tPCAPSTAT_EXCHANGE\tpcapstat_exchange{more}", f"Address Resolution Protocol\tARP\tarp{more}"]
    (tmp_path / "protocols").write_text("\n".join(lines) + "\n")
    (tmp_path / "tshark").write_text(f'#!/bin/sh\n[ "$1" = -G ] && exec cat {tmp_path}/protocols\necho "TShark (Wireshark) {version}."\n')
    (tmp_path / "tshark").chmod(0o755)
    monkeypatch.setenv("PCAPSTAT_TSHARK", str(tmp_path / "tshark"))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert plugins.loaded() == ({"pcapstat_exchange"}, "")
    assert ("for root" in (plugins.hindrance() or "")) == is_hindered


def test_uninstall_removes_what_install_wrote(installed: Path) -> None:
    """No file is left behind."""
    assert called(installed, "uninstall").returncode == 0
    assert [path for path in installed.rglob("*") if path.is_file()] == []
    assert "not installed" in called(installed, "list").stdout


def test_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    """A file of the same name that is not ours stops the installation before anything is written."""
    folder = plugin_folder(tmp_path)
    folder.mkdir(parents=True)
    (folder / NAMES[0]).write_text("-- somebody else's\n")
    done = called(tmp_path, "install")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert [path.name for path in folder.rglob("*") if path.is_file()] == [NAMES[0]]


def test_changed_files_are_left(installed: Path) -> None:
    """What was changed since is neither removed nor replaced, and named."""
    changed = plugin_folder(installed) / NAMES[1]
    changed.write_text(changed.read_text() + "-- mine\n")
    assert "older or changed" in called(installed, "list").stdout
    assert called(installed, "install").returncode == 3
    done = called(installed, "uninstall")
    assert (done.returncode, NAMES[1] in done.stderr, changed.exists()) == (1, True, True)


def test_the_package_holds_the_files_of_the_project(tmp_path: Path) -> None:
    """The shipped folder is the project's."""
    assert Path(called(tmp_path, "path").stdout.strip()) == ROOT / "dissectors"
