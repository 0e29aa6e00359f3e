"""Streams of the frames of encapsulated DICOM, and frames that have no samples."""

import io
import struct
import unittest

import numpy as np
import tessera
from data import DATA, Case
from tessera import Status, TesseraError

try:
    from PIL import Image
except ImportError:
    Image = None

FORMS = DATA / "dicom" / "forms"


def streams_of(data: bytes) -> list[bytes]:
    """The items of the pixel data, but for the offset table."""
    at = data.index(b"\xe0\x7f\x10\x00OB\x00\x00\xff\xff\xff\xff") + 12
    items = []
    while data[at : at + 4] == b"\xfe\xff\x00\xe0":
        size = struct.unpack_from("<I", data, at + 4)[0]
        items.append(data[at + 8 : at + 8 + size])
        at += 8 + size
    return items[1:]


def element(tag: int, vr: str, value: bytes) -> bytes:
    return struct.pack("<HH2sH", tag >> 16, tag & 0xFFFF, vr.encode(), len(value)) + value


def dicom_of_jpeg(streams: list[bytes], rows: int, columns: int) -> bytes:
    """A file of frames of lossy JPEG in three components."""
    syntax = element(0x00020010, "UI", b"1.2.840.10008.1.2.4.50")
    frames = str(len(streams)).encode()
    parts = [
        bytes(128), b"DICM", element(0x00020000, "UL", struct.pack("<I", len(syntax))), syntax,
        element(0x00280002, "US", struct.pack("<H", 3)), element(0x00280004, "CS", b"YBR_FULL_422"),
        element(0x00280006, "US", bytes(2)), element(0x00280008, "IS", frames + b" " * (len(frames) % 2)),
        element(0x00280010, "US", struct.pack("<H", rows)), element(0x00280011, "US", struct.pack("<H", columns)),
        element(0x00280100, "US", b"\x08\x00"), element(0x00280101, "US", b"\x08\x00"),
        element(0x00280102, "US", b"\x07\x00"), element(0x00280103, "US", bytes(2)),
        b"\xe0\x7f\x10\x00OB\x00\x00\xff\xff\xff\xff\xfe\xff\x00\xe0\x00\x00\x00\x00",
    ]
    for stream in streams:
        parts.append(b"\xfe\xff\x00\xe0" + struct.pack("<I", len(stream)) + stream)
    return b"".join(parts) + b"\xfe\xff\xdd\xe0\x00\x00\x00\x00"


def tiles(count: int) -> list[bytes]:
    """Streams of 128 x 96 pixels with some texture."""
    random = np.random.default_rng(11)
    rows, columns = np.mgrid[0:96, 0:128]
    made = []
    for k in range(count):
        plane = 128 + 60 * np.sin((columns + 9 * k) / 11) + 40 * np.cos(rows / 7) + random.normal(0, 6, rows.shape)
        values = np.clip(np.stack([plane, plane * 0.7 + 40, 255 - plane], -1), 0, 255).astype(np.uint8)
        out = io.BytesIO()
        Image.fromarray(values).save(out, "JPEG", quality=80)
        made.append(out.getvalue() + b"\0" * (len(out.getvalue()) % 2))
    return made


def with_bad_frame() -> bytes:
    """RLE of two frames in colours, of whose last one no samples can be made."""
    data = bytearray((FORMS / "rle_rgb_frames.dcm").read_bytes())
    data[data.rindex(b"\3\0\0\0\100\0\0\0")] = 1
    return bytes(data)


class StreamsTest(Case):
    def test_coded_frames(self) -> None:
        for name in ("rle_rgb_frames", "rle_1bit", "jpeg_lossless_rgb", "jpeg_ls_rgb", "deflated_frames", "jpeg_ls_fragments"):
            data = (FORMS / f"{name}.dcm").read_bytes()
            with self.subTest(name), tessera.open(tessera.compress(data)) as reader, tessera.open(data) as original:
                self.assertEqual(reader.info.units, 0)
                for opened in (reader, original):
                    streams = [opened.stream(k) for k in range(len(opened))]
                    self.assertEqual(b"".join(streams), b"".join(streams_of(data)))
                    for k in (-1, 0, len(opened) - 1):  # in any order
                        self.assertEqual(opened.stream(k), streams[k])
                    self.assertEqual(opened[0].shape, opened.shape[1:])

    def test_no_streams(self) -> None:
        for name in ("dicom/ct/slice_01.dcm", "png/formats/rgb8.png"):
            with tessera.open(tessera.compress(DATA / name)) as reader, self.assertRaises(TesseraError) as caught:
                reader.stream(0)
            self.assertEqual(caught.exception.status, Status.USAGE)
        with tessera.open(tessera.compress(FORMS / "rle_1bit.dcm")) as reader:
            for number in (3, -4):
                with self.assertRaises(IndexError):
                    reader.stream(number)

    def test_bad_frame(self) -> None:
        data = with_bad_frame()
        with tessera.open(FORMS / "rle_rgb_frames.dcm") as whole, tessera.open(
                tessera.compress(data)) as reader, tessera.open(data) as original:
            self.assertEqual((reader.info.units, reader.info.identical), (1, True))
            self.assertEqual(reader.original(), data)
            for opened in (reader, original):
                np.testing.assert_array_equal(opened[0], whole[0])
                self.assertEqual([opened.stream(0), opened.stream(1)], streams_of(data))
                with self.assertRaisesRegex(TesseraError, "frame 1 has no samples") as caught:
                    opened[1]
                self.assertEqual(caught.exception.status, Status.USAGE)

    @unittest.skipUnless(Image, "Pillow is missing")
    def test_lossy_jpeg(self) -> None:
        streams = tiles(9)
        data = dicom_of_jpeg(streams, 96, 128)
        coded = tessera.compress(data)
        self.assertLess(len(coded), 0.9 * len(data))
        with tessera.open(coded) as reader, tessera.open(data) as original:
            self.assertEqual((reader.info.units, reader.shape), (9, (9, 96, 128, 3)))
            self.assertEqual(reader.original(), data)
            for k in (4, 0, 8):
                self.assertEqual(reader.stream(k), streams[k])
                self.assertEqual(original.stream(k), streams[k])
                try:
                    pixels = reader[k]
                except TesseraError as error:
                    self.assertEqual(error.status, Status.VERSION)  # a build without libjpeg
                    continue
                wanted = np.asarray(Image.open(io.BytesIO(streams[k])))
                self.assertLessEqual(int(abs(pixels.astype(int) - wanted).max()), 3)  # another libjpeg may round
                np.testing.assert_array_equal(original[k], pixels)
                np.testing.assert_array_equal(reader[k, 10:20, 30:77], pixels[10:20, 30:77])

    @unittest.skipUnless(Image, "Pillow is missing")
    def test_damage_costs_a_frame(self) -> None:
        streams = tiles(30)
        coded = bytearray(tessera.compress(dicom_of_jpeg(streams, 96, 128)))
        coded[len(coded) // 2] ^= 4
        lost = 0
        with tessera.open(bytes(coded)) as reader:
            for k in range(30):
                try:
                    self.assertEqual(reader.stream(k), streams[k])
                except TesseraError as error:
                    self.assertEqual(error.status, Status.CORRUPT)
                    lost += 1
        self.assertEqual(lost, 1)


if __name__ == "__main__":
    unittest.main()
