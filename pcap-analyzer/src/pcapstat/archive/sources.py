"""What an archive holds: captures in folders, behind globs, in tar and zip files, at addresses."""

from __future__ import annotations

import glob
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcapstat.capture import escaped
from pcapstat.errors import ToolMissing, UnreadableCapture, UsageError
from pcapstat.labels import ENDINGS, SUFFIXES

ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2")
"""Names of archive files, as globs find them."""
GONE = ""
"""Stamp of what is not there, or cannot be known without reading it."""
DAMAGED = (EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
"""What is raised for archive files that are damaged or cut off."""


@dataclass(frozen=True)
class Source:
    """One capture: its name in the archive, and how to get it: a file, a member of an archive file, an address.

    Paths are absolute: whoever works on it may do so in another folder.
    """

    name: str
    container: str
    member: str | None = None

    def stamp(self) -> str:
        """Return what changes when the file does: size and time of modification; GONE where that is not known."""
        try:
            stat = None if "://" in self.container else os.stat(self.container)
        except OSError:
            stat = None
        return f"{stat.st_size}-{stat.st_mtime_ns}" if stat else GONE

    @property
    def is_file(self) -> bool:
        """Whether it is a file by itself, of which nobody has to make a copy."""
        return self.member is None and "://" not in self.container

    def size_bytes(self) -> int:
        """Return the size of a file by itself; 0 of all else, of which every worker would have to make a copy, and of what is gone."""
        try:
            return os.stat(self.container).st_size if self.is_file else 0
        except OSError:
            return 0

    def fetch(self, folder: Path) -> Path:
        """Return a file with the capture, a copy in `folder` where it is no file by itself. Raises UnreadableCapture, OSError."""
        if self.is_file:
            return Path(self.container)
        target = folder / Path(self.member or self.container).name
        try:
            self.copy(target)
        except (*DAMAGED, RuntimeError, NotImplementedError) as error:
            # the last two are of zip: a password, a compression that it does not know
            raise UnreadableCapture(f"{self.name}: {error} (unpack the archive file, or copy it again)") from None
        return target

    def copy(self, target: Path) -> None:
        """Write a copy of the capture."""
        with target.open("wb") as file:
            if "://" in self.container:
                with filesystem().open(self.container, "rb") as stream:
                    shutil.copyfileobj(stream, file)
            elif is_zip(self.container):
                with zipfile.ZipFile(self.container) as zipped, zipped.open(str(self.member)) as member:
                    shutil.copyfileobj(member, file)
            else:
                with tarfile.open(self.container) as archive:
                    content = archive.extractfile(str(self.member))
                    if content is not None:
                        shutil.copyfileobj(content, file)


def named(source: str, error: str) -> str:
    """Return what happened to a capture, with its name."""
    return error if error.startswith(source) else f"{source}: {error}"


def filesystem() -> Any:
    """Return fsspec. Raises ToolMissing without it."""
    try:
        import fsspec
    except ImportError:
        raise ToolMissing("fsspec: not installed (pip install 'pcapstat[cloud]')") from None
    return fsspec


def listed(specs: list[str], complain: Callable[[str], None] = lambda _: None) -> list[Source]:
    """Return all captures that the specs name, in the order of their names. Raises UnreadableCapture where one names nothing.

    `complain` is told of each folder that cannot be opened.
    """
    found: dict[str, Source] = {}
    for spec in specs:
        sources = list(of_spec(spec, complain))
        if not sources:
            raise UnreadableCapture(f"{escaped(spec)}: no capture there (names end with {', '.join(SUFFIXES)}, packed or not)")
        found |= {source.name: source for source in sources}
    return [found[name] for name in sorted(found)]


def of_spec(spec: str, complain: Callable[[str], None]) -> Iterator[Source]:
    """Return the captures of one folder, glob, archive file, address or file."""
    if "://" in spec:
        yield from at_address(spec)
    elif os.path.isdir(spec):
        yield from in_folder(spec, complain)
    elif os.path.isfile(spec):
        yield from in_file(spec)
    else:
        for path in sorted(glob.glob(spec, recursive=True)):
            if os.path.isdir(path):
                yield from in_folder(path, complain)
            elif os.path.isfile(path) and (is_capture(path) or path.endswith(ARCHIVES)):
                yield from in_file(path)


def in_folder(folder: str, complain: Callable[[str], None]) -> Iterator[Source]:
    """Return the captures below a folder. Links to files are followed, links to folders are not: they may lead in a circle."""

    def closed(error: OSError) -> None:
        complain(f"{escaped(error.filename)}: {error.strerror} (check the folder's permissions; what is in it is left out)")

    for place, _, names in os.walk(folder, onerror=closed):
        paths = (Path(place) / name for name in names if is_capture(name))
        yield from (Source(escaped(path), os.path.abspath(path)) for path in paths if path.is_file())


def in_file(path: str) -> Iterator[Source]:
    """Return the captures of a tar or zip file, or the capture that the file is. Raises UnreadableCapture where its list is cut off."""
    name = escaped(str(Path(path)))
    try:
        found = members(path)
    except DAMAGED as error:
        raise UnreadableCapture(f"{name}: {error} (copy the archive file again)") from None
    except OSError as error:
        if not is_capture(path):
            raise UnreadableCapture(f"{name}: {error.strerror or error} (check the file and its permissions)") from None
        # whoever measures it will say so, and it stops no other
        found = None
    if found is None:
        yield Source(name, os.path.abspath(path))
        return
    yield from (Source(escaped(f"{name}/{member}"), os.path.abspath(path), member) for member in sorted(found) if is_capture(member))


def is_capture(name: str) -> bool:
    """Whether a file is a capture by its name."""
    return name.lower().endswith(ENDINGS)


def is_zip(path: str) -> bool:
    """Whether a file is a zip file by its beginning too: a capture, or a tar file, may end with one."""
    with open(path, "rb") as file:
        return file.read(2) == b"PK" and zipfile.is_zipfile(path)


def members(path: str) -> list[str] | None:
    """Return the names of the files in a tar or zip file; none of a file that is no such."""
    if is_zip(path):
        with zipfile.ZipFile(path) as zipped:
            return zipped.namelist()
    if not is_capture(path) and tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            return [member.name for member in archive.getmembers() if has_content(archive, member)]
    return None


def has_content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bool:
    """Whether a member is a file, or a link to one that is there: tar packs the further names of a file as links."""
    try:
        return archive.extractfile(member) is not None
    except (KeyError, RecursionError):
        return False


def at_address(spec: str) -> Iterator[Source]:
    """Return the captures at an address of fsspec: below it, or itself."""
    fsspec = filesystem()
    try:
        system, root = fsspec.core.url_to_fs(spec)
    except ImportError as error:
        raise ToolMissing(f"{spec}: {error} (pip install 'pcapstat[cloud]' and what is named here)") from None
    except ValueError as error:
        raise UsageError(f"{spec}: {error} (write for example s3://bucket/folder)") from None
    if is_capture(spec):
        yield Source(spec, spec)
        return
    for path in sorted(system.find(root)):
        if is_capture(path):
            address = system.unstrip_protocol(path)
            yield Source(address, address)
