"""Failures."""

from __future__ import annotations

import enum
import errno as codes
import os
from typing import Any, NoReturn

from . import _native


class Status(enum.IntEnum):
    """Why a call failed. The values are the exit statuses of the command line."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    READ = 20
    NOT_TSR = 21
    NO_INPUT = 22
    WRITE = 40
    EXISTS = 41
    SAME_FILE = 42
    VERIFY = 60
    CORRUPT = 61
    LIMIT = 62
    VERSION = 63
    LOSS = 64
    KEY = 65
    ENGINE = 70
    PARTIAL = 75
    CANCELLED = 76


class TesseraError(Exception):
    """A call of the library failed. Where a file cannot be opened, read or written, it is an OSError, too.

    The class is then also that of Python's own functions: FileNotFoundError, FileExistsError, PermissionError,
    IsADirectoryError or NotADirectoryError, with errno, strerror and filename.

    Attributes
    ----------
    status : Status
        Why it failed.
    path : str or None
        The file or the member that the failure is about; None where it has no name.
    offset : int or None
        The byte of the input where it was noticed; None where that says nothing.
    errno : int
        errno of the system call that failed, or would have; 0 for none.
    """

    def __init__(
        self,
        text: str,
        status: Status = Status.USAGE,
        path: str | None = None,
        offset: int | None = None,
        errno: int = 0,
    ) -> None:
        super().__init__(text, status, path, offset, errno)
        self._tell(text, status, path, offset, errno)

    def _tell(self, text: str, status: Status, path: str | None, offset: int | None, errno: int) -> None:
        self.text = text
        self.status = status
        self.path = path
        self.offset = offset
        self.errno = errno

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path and not _names(self.text, self.path) else self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.status, self.path, self.offset, self.errno), self.__dict__


class ChangedError(OSError):
    """What is read is another object by now."""

    def __init__(self) -> None:
        super().__init__("it changed while it was read")


def _names(text: str, path: str) -> bool:
    """Whether a sentence has a path as a whole word, or as the end of a longer path."""
    at = text.find(path)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(path) :][:1]
        if (not before or before in " '(/") and (not after or after in " ':,;)"):
            return True
        at = text.find(path, at + 1)
    return False


class TesseraOSError(TesseraError, OSError):  # type: ignore[misc] # errno is an int in both, and 0 for none
    """A file could not be opened, read or written: an OSError, too, with errno, strerror and filename."""

    def __init__(
        self,
        text: str,
        status: Status = Status.READ,
        path: str | None = None,
        offset: int | None = None,
        errno: int = 0,
    ) -> None:
        OSError.__init__(self, errno, os.strerror(errno) if errno else text, path)
        self._tell(text, status, path, offset, errno)


class TesseraFileNotFoundError(TesseraOSError, FileNotFoundError):  # type: ignore[misc]
    """A file or a folder is not there."""


class TesseraFileExistsError(TesseraOSError, FileExistsError):  # type: ignore[misc]
    """An output is there, and is not to be replaced."""


class TesseraPermissionError(TesseraOSError, PermissionError):  # type: ignore[misc]
    """The system does not allow it."""


class TesseraIsADirectoryError(TesseraOSError, IsADirectoryError):  # type: ignore[misc]
    """A folder stands where a file is expected."""


class TesseraNotADirectoryError(TesseraOSError, NotADirectoryError):  # type: ignore[misc]
    """A file stands where a folder is expected."""


_OS_ERRORS: dict[int, type[TesseraOSError]] = {
    codes.ENOENT: TesseraFileNotFoundError,
    codes.EEXIST: TesseraFileExistsError,
    codes.EACCES: TesseraPermissionError,
    codes.EPERM: TesseraPermissionError,
    codes.EISDIR: TesseraIsADirectoryError,
    codes.ENOTDIR: TesseraNotADirectoryError,
}


def _code_of(status: Status, system: int, path: str | None) -> int:
    """errno of a failure: of the system call, or what Python's own functions would say."""
    if system:
        return system
    if status == Status.EXISTS:
        return codes.EEXIST
    is_folder = path is not None and status in (Status.READ, Status.WRITE) and os.path.isdir(path)
    return codes.EISDIR if is_folder else 0


def from_native(error: _native.tsr_error, path: str | None, out: str | None = None) -> TesseraError:
    """The exception of a structure that a failed call has filled. path: what was read; out: what was to be written."""
    try:
        status = Status(error.status)
    except ValueError:
        status = Status.INTERNAL
    text = error.text.decode("utf-8", "replace")
    if not text:
        text = _native.library.tsr_status_name(status).decode()
    offset = None if error.offset == _native.NO_OFFSET else int(error.offset)
    if out is not None and status in (Status.WRITE, Status.EXISTS):
        path = out
    code = _code_of(status, int(error.system), path)
    is_os = code or status in (Status.READ, Status.WRITE, Status.EXISTS)
    kind: type[TesseraError] = _OS_ERRORS.get(code, TesseraOSError) if is_os else TesseraError
    return kind(text, status, path, offset, code)


def fail(
    error: _native.tsr_error, path: str | None, cause: BaseException | None, out: str | None = None
) -> NoReturn:
    """Raises what a callback has raised if it must end the program, else a TesseraError that it has caused, in its own
    words if that is a change."""
    if cause is not None and not isinstance(cause, Exception):
        raise cause
    if isinstance(cause, ChangedError):
        raise TesseraError(str(cause), Status.READ, path) from cause
    raise from_native(error, path, out) from cause


def check(
    status: int,
    error: _native.tsr_error,
    path: str | None = None,
    cause: BaseException | None = None,
    out: str | None = None,
) -> None:
    """Raises unless a call's status is TSR_OK."""
    if status != Status.OK:
        error.status = status
        fail(error, path, cause, out)
