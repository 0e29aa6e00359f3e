"""Keys of encrypted files."""

from __future__ import annotations

import ctypes
import os
from typing import NoReturn, Union

from . import _native
from ._errors import check
from ._media import Source

_library = _native.library


class Key:
    """What encrypts and decrypts .tsr files, held in memory that is locked and left out of core dumps.

    Parameters
    ----------
    secret : path or bytes
        A key file of 32 bytes, or these bytes. A str is a path.
    passphrase : bool
        The secret is a passphrase, from which a key is computed (Argon2id), and not a key. Of a file, one newline at its
        end does not count.
    memory : int
        The most bytes that computing it may take; 0: a half of what is available.

    Raises
    ------
    TesseraError
        With status USAGE if a key has not 32 bytes; VERSION if the library was built without libsodium.

    Notes
    -----
    A key is not pickled, and so neither is a reader with one. Prefer a file: Python keeps bytes that it was given.
    """

    def __init__(self, secret: str | os.PathLike[str] | bytes, *, passphrase: bool = False, memory: int = 0) -> None:
        found, error = ctypes.c_void_p(), _native.tsr_error()
        self._native: int | None = None
        with Source(secret) as source:
            status = _library.tsr_key_open(
                ctypes.byref(source.native), int(passphrase), memory, ctypes.byref(found), ctypes.byref(error)
            )
            check(status, error, source.name, source.raised)
        self._native = found.value

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not pickled: it would leave the memory that guards it")

    def __repr__(self) -> str:
        return "<tessera.Key>"

    def __del__(self) -> None:
        native, self._native = getattr(self, "_native", None), None
        if native is not None:
            _library.tsr_key_close(native)


KeyLike = Union[Key, str, "os.PathLike[str]", bytes]


def key_of(key: KeyLike | None) -> Key | None:
    """A key that is one, or that is made of a file or of its bytes."""
    return key if key is None or isinstance(key, Key) else Key(key)


def set_key(native: _native.tsr_data_source | _native.tsr_data_sink, key: Key | None) -> None:
    """Gives a source or a sink its key, which must stay as long as that is used."""
    if key is not None:
        native.key = key._native
