"""Encrypted files (io/cipher/ENCRYPTION.md): the same comes back with the key, and nothing without it."""

import os
import pickle
import tempfile

import numpy as np
import tessera
from data import Case, ramp
from tessera import Key, Status, TesseraError

SECRET = bytes(range(32))


class TestKey(Case):
    def setUp(self) -> None:
        super().setUp()
        self.array = ramp((3, 200, 150), np.uint16)
        self.key = Key(SECRET)

    def refused(self, status: Status, function, *arguments, **more) -> None:
        with self.assertRaises(TesseraError) as caught:
            function(*arguments, **more)
        self.assertEqual(caught.exception.status, status)

    def test_there_and_back(self) -> None:
        plain, data = tessera.compress(self.array), tessera.compress(self.array, key=self.key)
        self.assertNotEqual(data, tessera.compress(self.array, key=SECRET))
        self.assertEqual(tessera.decompress(data, key=SECRET), tessera.decompress(plain))
        with tessera.open(data, key=self.key) as reader, tessera.open(plain) as other:
            self.assertTrue(reader.info.encrypted)
            self.assertFalse(other.info.encrypted)
            self.assertEqual(reader.info.file_bytes, len(data))
            self.assertEqual(reader.id, other.id) if hasattr(reader, "id") else None
            np.testing.assert_array_equal(reader[1, 20:50, 7:], self.array[1, 20:50, 7:])
            with self.assertRaises(TypeError):
                pickle.dumps(reader)

    def test_without_the_key(self) -> None:
        data = tessera.compress(self.array, key=self.key)
        changed = bytearray(data)
        changed[len(data) // 2] ^= 1
        for function in (tessera.decompress, tessera.open):
            self.refused(Status.KEY, function, data)
            self.refused(Status.KEY, function, data, key=bytes(32))
        self.refused(Status.CORRUPT, tessera.decompress, bytes(changed), key=self.key)
        self.refused(Status.USAGE, Key, bytes(31))
        with self.assertRaises(TypeError):
            pickle.dumps(self.key)
        self.assertNotIn("0001", repr(self.key))

    def test_files(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            secret, path, back = (os.path.join(folder, name) for name in ("key", "a.tsr", "back"))
            with open(secret, "wb") as file:
                file.write(SECRET)
            tessera.compress_file(self.array, path, key=secret)
            self.refused(Status.KEY, tessera.restore_file, path, back)
            self.assertFalse(os.path.exists(back))
            tessera.restore_file(path, back, key=secret)
            with open(back, "rb") as file:
                self.assertEqual(file.read(), self.array.astype("<u2").tobytes())

    def test_passphrase(self) -> None:
        words = Key(b"open sesame", passphrase=True)
        data = tessera.compress(self.array, key=words)
        again = Key(b"open sesame\n", passphrase=True)
        self.assertEqual(tessera.decompress(data, key=again), self.array.astype("<u2").tobytes())
        self.refused(Status.KEY, tessera.decompress, data, key=Key(b"open barley", passphrase=True))
        self.refused(Status.KEY, tessera.decompress, data, key=self.key)
        self.refused(Status.LIMIT, tessera.decompress, data, key=Key(b"open sesame", passphrase=True, memory=1 << 20))


class TestNoKey(Case):
    """A library without libsodium says so."""

    def test_says_so(self) -> None:
        with self.assertRaises(TesseraError) as caught:
            Key(SECRET)
        self.assertEqual(caught.exception.status, Status.VERSION)
        self.assertIn("libsodium", str(caught.exception))


def has_libsodium() -> bool:
    try:
        Key(SECRET)
    except TesseraError as error:
        return error.status != Status.VERSION
    return True


if has_libsodium():
    del TestNoKey
else:
    del TestKey
