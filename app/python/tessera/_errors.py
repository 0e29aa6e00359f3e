"""Failures."""

from __future__ import annotations

import enum
from typing import NoReturn

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
    ENGINE = 70
    PARTIAL = 75
    CANCELLED = 76


class TesseraError(Exception):
    """A call of the library failed.

    Attributes
    ----------
    status : Status
        Why it failed.
    path : str or None
        The file or the member that the failure is about; None where it has no name.
    offset : int or None
        The byte of the input where it was noticed; None where that says nothing.
    errno : int
        errno of the system call that failed; 0 where none did.
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
        self.text = text
        self.status = status
        self.path = path
        self.offset = offset
        self.errno = errno

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class ChangedError(OSError):
    """What is read is another object by now."""

    def __init__(self) -> None:
        super().__init__("it changed while it was read")


def from_native(error: _native.tsr_error, path: str | None) -> TesseraError:
    """The exception of a structure that a failed call has filled."""
    try:
        status = Status(error.status)
    except ValueError:
        status = Status.INTERNAL
    text = error.text.decode("utf-8", "replace")
    if not text:
        text = _native.library.tsr_status_name(status).decode()
    offset = None if error.offset == _native.NO_OFFSET else int(error.offset)
    return TesseraError(text, status, path, offset, int(error.system))


def fail(error: _native.tsr_error, path: str | None, cause: BaseException | None) -> NoReturn:
    """Raises what a callback has raised if it must end the program, else a TesseraError that it has caused, in its own
    words if that is a change."""
    if cause is not None and not isinstance(cause, Exception):
        raise cause
    if isinstance(cause, ChangedError):
        raise TesseraError(str(cause), Status.READ, path) from cause
    raise from_native(error, path) from cause


def check(status: int, error: _native.tsr_error, path: str | None = None, cause: BaseException | None = None) -> None:
    """Raises unless a call's status is TSR_OK."""
    if status != Status.OK:
        error.status = status
        fail(error, path, cause)
