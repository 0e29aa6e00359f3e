"""The images of files in files: archives and gzip."""

import gzip
import io
import random
import tarfile
import unittest
import zipfile

import numpy as np
import tessera
from data import DATA, Case
from tessera import TesseraError

SLICES = sorted((DATA / "dicom" / "ct").glob("slice_*.dcm"))[:3]
PNM = DATA / "pnm" / "landscape_8bit.ppm"


def zipped(*files: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return out.getvalue()


def tarred(*files: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


class ImagesTest(Case):
    def test_archive(self) -> None:
        originals = [path.read_bytes() for path in SLICES]
        data = zipped(*((str(i), original) for i, original in enumerate(originals)), ("text", b"no image" * 99))
        with tessera.open(tessera.compress(data)) as reader:
            self.assertEqual((reader.info.restore, reader.info.files, len(reader.images)), ("files", 3, 3))
            self.assertEqual(reader.original(), data)
            images = list(reader.images)
            self.assertEqual(len(reader.images[1:]), 2)
            self.assertEqual(reader.images[-1].original(), originals[-1])
            for bad in (3, -4):
                with self.assertRaises(IndexError):
                    reader.images[bad]
        for image, path, original in zip(images, SLICES, originals):  # they stay when the archive is closed
            self.assertEqual(image.original(), original)
            with tessera.open(path) as slice_reader:
                np.testing.assert_array_equal(image[:], slice_reader[:])
            self.assertEqual(image.info.kind, "dicom")
            self.assertEqual(len(image.images), 1)
            self.assertIs(image.images[0], image)

    def test_files_in_files(self) -> None:
        slices = [path.read_bytes() for path in SLICES]
        inner = gzip.compress(tarred(("a", slices[0]), ("b", PNM.read_bytes())), mtime=0)
        data = tarred(("x.tgz", inner), ("c", slices[1]), ("none", bytes(4096)), ("d.zip", zipped(("e", slices[2]))))
        with tessera.open(tessera.compress(data)) as reader:
            found = [image.original() for image in reader.images]
            self.assertEqual(found, [slices[0], PNM.read_bytes(), slices[1], slices[2]])
            self.assertEqual(reader.images[1][:].shape, tessera.open(PNM)[:].shape)

    def test_none(self) -> None:
        for data in (b"text" * 1000, zipped(("text", b"no image" * 1000))):
            with tessera.open(tessera.compress(data)) as reader:
                self.assertEqual(len(reader.images), 0)
                with self.assertRaises(IndexError):
                    reader.images[0]

    def test_stored(self) -> None:
        data = b"P5\n64 64\n255\n" + random.Random(1).randbytes(4096)
        with tessera.open(tessera.compress(data)) as reader:
            self.assertEqual((reader.info.way, len(reader.images)), ("stored", 1))
            self.assertIs(reader.images[0], reader)
            self.assertEqual(reader.images[0][0].tobytes(), data[-4096:])

    def test_damage(self) -> None:
        data = tarred(*((path.name, path.read_bytes()) for path in SLICES))
        good = tessera.compress(data)
        with tessera.open(good) as reader:
            count = len(reader.images)
        failures = 0
        for at in range(100, len(good) - 200, len(good) // 23):
            bad = bytearray(good)
            bad[at] ^= 16
            try:
                with tessera.open(bytes(bad)) as reader:
                    for i in range(len(reader.images)):
                        self.assertEqual(reader.images[i].original(), SLICES[i].read_bytes())
                    self.assertEqual(len(reader.images), count)
            except TesseraError:
                failures += 1
        self.assertGreater(failures, 5)


if __name__ == "__main__":
    unittest.main()
