"""Streams of the frames of encapsulated DICOM, and frames that have no samples."""

import base64
import io
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tessera
from data import DATA, PROGRAM, Case
from tessera import Status, TesseraError

try:
    from PIL import Image, features
except ImportError:
    Image = None
try:
    import pydicom
except ImportError:
    pydicom = None

HAS_JPEG_2000 = Image and features.check("jpg_2000")

FORMS = DATA / "dicom" / "forms"
# Irreversible HTJ2K of 24 x 16 numbers, by OpenJPH: a wave with squares of 255.
HT_STREAM = base64.b64decode(
    "/0//UQApQAAAAAAYAAAAEAAAAAAAAAAAAAAAGAAAABAAAAAAAAAAAAABBwEB/1AACAACAAAAIP9SAAwAAgABAAMEBEAA/1wAFyJJvEnLSctJ2k"
    "JCQkJCljogOiA52P9kABYAAU9wZW5KUEggVmVyIDAuOS4wLv+QAAoAAAAAAKIAAf+TwCsA8MI8FDNnACEBezYAwCqgFXAKkKY4fg7XARF4tQBG"
    "E4vJ+gBBB/l2AB5L0PkAS361AMBaMBaUBODlaL8VA+gAB88FzcAYsPq4AIMPFRBiOYEEGGIAZHR0Kb+YAPwAlJEb1gDAtGBaUCYz7jDjjvi3yS"
    "SrQ5JReWK7AOECDBntwPeARt55F+DHyU3cAP758ARVAP/Z"
)


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


def dicom_of(streams: list[bytes], rows: int, columns: int, syntax_uid: str, photometric: str, bits: int = 8,
             signed: bool = False) -> bytes:
    """A file of frames that are streams, of samples of so many bits."""
    uid = syntax_uid.encode()
    syntax = element(0x00020010, "UI", uid + b"\0" * (len(uid) % 2))
    frames = str(len(streams)).encode()
    gray = photometric.startswith("MONO")
    word = struct.Struct("<H").pack
    parts = [
        bytes(128), b"DICM", element(0x00020000, "UL", struct.pack("<I", len(syntax))), syntax,
        element(0x00080016, "UI", b"1.2.840.10008.5.1.4.1.1.7\0"),
        element(0x00280002, "US", word(1 if gray else 3)),
        element(0x00280004, "CS", photometric.encode() + b" " * (len(photometric) % 2)),
        b"" if gray else element(0x00280006, "US", bytes(2)),
        element(0x00280008, "IS", frames + b" " * (len(frames) % 2)),
        element(0x00280010, "US", word(rows)), element(0x00280011, "US", word(columns)),
        element(0x00280100, "US", word(8 if bits <= 8 else 16)), element(0x00280101, "US", word(bits)),
        element(0x00280102, "US", word(bits - 1)), element(0x00280103, "US", word(signed)),
        b"\xe0\x7f\x10\x00OB\x00\x00\xff\xff\xff\xff\xfe\xff\x00\xe0\x00\x00\x00\x00",
    ]
    for stream in streams:
        parts.append(b"\xfe\xff\x00\xe0" + struct.pack("<I", len(stream)) + stream)
    return b"".join(parts) + b"\xfe\xff\xdd\xe0\x00\x00\x00\x00"


def dicom_of_jpeg(streams: list[bytes], rows: int, columns: int) -> bytes:
    """A file of frames of lossy JPEG in three components."""
    return dicom_of(streams, rows, columns, "1.2.840.10008.1.2.4.50", "YBR_FULL_422")


def of_jpeg_2000(values: np.ndarray, **how: object) -> bytes:
    """An irreversible stream."""
    out = io.BytesIO()
    Image.fromarray(values).save(out, "JPEG2000", no_jp2=True, irreversible=True, quality_layers=[5], **how)
    return out.getvalue() + b"\0" * (len(out.getvalue()) % 2)


def smooth(count: int, most: int, seed: int = 5) -> list[np.ndarray]:
    """Planes of 90 x 120 numbers up to most, with some texture."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:90, 0:120]
    return [np.clip((0.5 + 0.3 * np.sin((columns + 9 * k) / 11) + 0.1 * np.cos(rows / 7) +
                     random.normal(0, 0.02, rows.shape)) * most, 0, most) for k in range(count)]


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


def decoded(opened: tessera.Member, frame: int) -> np.ndarray | None:
    """A frame; None: this build lacks its codec."""
    try:
        return opened[frame]
    except TesseraError as error:
        if error.status != Status.VERSION:
            raise
        return None


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
                with self.assertRaisesRegex(TesseraError, "frame 1 cannot be decoded") as caught:
                    opened[1]
                self.assertEqual(caught.exception.status, Status.CORRUPT)

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

    def check(self, data: bytes, streams: list[bytes], wanted: list[np.ndarray], bound: int = 1) -> bytes:
        """A file of units, or of one frame, comes back; its streams and its pixels are read. Returns the .tsr."""
        coded = tessera.compress(data)
        with tessera.open(coded) as reader, tessera.open(data) as original:
            self.assertEqual(reader.original(), data)
            for opened in (reader, original):
                self.assertEqual(opened.shape[0], len(streams))
                for k in (len(streams) - 1, 0):
                    self.assertEqual(opened.stream(k), streams[k])
                    pixels = decoded(opened, k)
                    if pixels is None:
                        continue
                    self.assertEqual(pixels.dtype.itemsize, wanted[k].dtype.itemsize)
                    difference = abs(pixels.astype(int) - wanted[k].astype(int))
                    self.assertLessEqual(int(difference.max()), bound)  # another version of the library may round
        return coded

    @unittest.skipUnless(HAS_JPEG_2000, "Pillow with JPEG 2000 is missing")
    def test_lossy_jpeg_2000(self) -> None:
        planes = smooth(6, 255)
        colours = [np.stack([p, 255 - p, p * 0.7], -1).astype(np.uint8) for p in planes]
        grays = [p.astype(np.uint8) for p in planes]
        words = [p.astype(np.uint16) for p in smooth(6, 60000)]
        for what, images, photometric, bits, how in (("colours", colours, "YBR_ICT", 8, {"mct": 1}),
                                                     ("gray", grays, "MONOCHROME2", 8, {}),
                                                     ("words", words, "MONOCHROME2", 16, {}),
                                                     ("tiles", words, "MONOCHROME2", 16, {"tile_size": (60, 60)})):
            streams = [of_jpeg_2000(image, **how) for image in images]
            wanted = [np.asarray(Image.open(io.BytesIO(stream))) for stream in streams]
            for syntax in ("91", "90", "203"):
                data = dicom_of(streams, 90, 120, f"1.2.840.10008.1.2.4.{syntax}", photometric, bits)
                with self.subTest(what, syntax=syntax):
                    coded = self.check(data, streams, wanted)
                    with tessera.open(coded) as reader:
                        self.assertEqual(reader.info.units, len(streams))
                    self.assertLess(len(coded), len(data))
            if pydicom and photometric == "MONOCHROME2":
                data = dicom_of(streams, 90, 120, "1.2.840.10008.1.2.4.91", photometric, bits)
                by_pydicom = pydicom.dcmread(io.BytesIO(data)).pixel_array
                np.testing.assert_array_equal(by_pydicom, np.stack(wanted))

    def test_lossy_htj2k(self) -> None:
        rows, columns = np.mgrid[0:16, 0:24]
        wave = (0.5 + 0.45 * np.sin((columns + 9) / 5) * np.cos(rows / 7)) * 255
        wanted = np.where((columns // 8 + rows // 8) % 5 == 0, 255, wave).astype(np.uint8)
        for count in (1, 3):
            data = dicom_of([HT_STREAM] * count, 16, 24, "1.2.840.10008.1.2.4.203", "MONOCHROME2")
            self.check(data, [HT_STREAM] * count, [wanted] * count, 12)

    @unittest.skipUnless(HAS_JPEG_2000, "Pillow with JPEG 2000 is missing")
    def test_signed_jpeg_2000(self) -> None:
        """The sign stands in the stream, or, of all 16 bits, in the header alone."""
        values = [(p - 20000).astype(np.int16) for p in smooth(4, 50000)]
        streams = [of_jpeg_2000((v.astype(int) + 32768).astype(np.uint16)) for v in values]
        plain = [np.asarray(Image.open(io.BytesIO(stream))).astype(int) - 32768 for stream in streams]
        signed = [stream.replace(b"\x00\x01\x0f\x01\x01", b"\x00\x01\x8f\x01\x01", 1) for stream in streams]  # SIZ
        self.assertNotEqual(signed, streams)
        data = dicom_of(signed, 90, 120, "1.2.840.10008.1.2.4.91", "MONOCHROME2", 16, True)
        self.check(data, signed, [p.astype(np.int16) for p in plain])
        data = dicom_of(streams, 90, 120, "1.2.840.10008.1.2.4.91", "MONOCHROME2", 16, True)
        self.check(data, streams, [(p + 32768).astype(np.uint16).view(np.int16) for p in plain])
        short = [of_jpeg_2000(p.astype(np.uint8)) for p in smooth(4, 255)]
        with tessera.open(dicom_of(short, 90, 120, "1.2.840.10008.1.2.4.91", "MONOCHROME2", 16, True)) as reader:
            with self.assertRaises(TesseraError) as caught:
                reader[0]
            self.assertRegex(str(caught.exception), "sign of samples|this build has no libopenjp2")

    @unittest.skipUnless(HAS_JPEG_2000, "Pillow with JPEG 2000 is missing")
    def test_other_images(self) -> None:
        """Streams that are not of the header's image, or of no codec: bytes come back, and pixels are refused."""
        good = [of_jpeg_2000(p.astype(np.uint8)) for p in smooth(4, 255)]
        other = of_jpeg_2000(smooth(1, 255)[0][:80].astype(np.uint8))
        deep = of_jpeg_2000(smooth(1, 60000)[0].astype(np.uint16))
        tiny_tiles = of_jpeg_2000(smooth(1, 255)[0].astype(np.uint8), tile_size=(2, 2), num_resolutions=1)
        cut = good[3][: len(good[3]) // 2 // 2 * 2]
        bad = [other, deep, tiny_tiles, bytes(300), good[1][:40], b"", cut]
        streams = good + bad
        data = dicom_of(streams, 90, 120, "1.2.840.10008.1.2.4.91", "MONOCHROME2")
        coded = tessera.compress(data)
        with tessera.open(coded) as reader:
            self.assertEqual((reader.original(), reader.info.units), (data, len(streams)))
            for k, stream in enumerate(streams):
                self.assertEqual(reader.stream(k), stream)
                if len(good) <= k < len(streams) - 1:
                    with self.assertRaisesRegex(TesseraError, f"frame {k} cannot be decoded") as caught:
                        reader[k]
                    self.assertIn(caught.exception.status, (Status.CORRUPT, Status.VERSION))

    @unittest.skipUnless(HAS_JPEG_2000, "Pillow with JPEG 2000 is missing")
    def test_one_frame(self) -> None:
        """A file of one frame is stored or packed, and read all the same."""
        plane = smooth(1, 255)[0].astype(np.uint8)
        stream = of_jpeg_2000(plane)
        data = dicom_of([stream], 90, 120, "1.2.840.10008.1.2.4.91", "MONOCHROME2")
        self.check(data, [stream], [np.asarray(Image.open(io.BytesIO(stream)))])
        jpeg = tiles(1)
        coded = self.check(dicom_of_jpeg(jpeg, 96, 128), jpeg, [np.asarray(Image.open(io.BytesIO(jpeg[0])))], 3)
        with tessera.open(coded) as reader:
            self.assertEqual((reader.info.units, reader.info.restore), (0, "streams"))
            pixels = decoded(reader, 0)
            if pixels is None:
                return
            np.testing.assert_array_equal(reader[0, 10:20, 30:77], pixels[10:20, 30:77])
        with tessera.open(coded) as reader, ThreadPoolExecutor(4) as pool:  # all ask at once, the first one restores
            for got in pool.map(lambda _: reader[0], range(24)):
                np.testing.assert_array_equal(got, pixels)
        for name, content in (("a.dcm", data), ("b.dcm", dicom_of_jpeg(tiles(3), 96, 128)), ("c.txt", b"text")):
            (self.folder / name).write_bytes(content)
        out = self.folder / "all.tsr"
        subprocess.run([PROGRAM, "compress", "-q", "--series", out, *sorted(self.folder.glob("[abc].*"))], check=True)
        with tessera.open(out) as series:
            for _ in range(2):  # what was restored of another member is given up
                lossy = decoded(series["a.dcm"], 0)
                if lossy is not None:
                    np.testing.assert_allclose(lossy, np.asarray(Image.open(io.BytesIO(stream))), atol=1)
                self.assertEqual(series["b.dcm"].stream(2), tiles(3)[2])
                self.assertEqual(series["a.dcm"].stream(0), stream)
                with self.assertRaisesRegex(TesseraError, "no image"):
                    series["c.txt"][0]

    @unittest.skipUnless(Image, "Pillow is missing")
    def test_stored_images(self) -> None:
        """An image that is smaller packed than coded is read from its restored bytes."""
        out = io.BytesIO()
        Image.fromarray(smooth(1, 255)[0][:20, :20].astype(np.uint8)).save(out, "PNG")
        with tessera.open(tessera.compress(out.getvalue())) as reader, tessera.open(out.getvalue()) as original:
            self.assertEqual((reader.info.restore, reader.shape), ("streams", (1, 20, 20)))
            np.testing.assert_array_equal(reader[0], original[0])
            self.assertEqual(reader.original(), out.getvalue())
            with self.assertRaisesRegex(TesseraError, "no streams of their own"):
                reader.stream(0)
        with tessera.open(tessera.compress(b"text " * 40)) as reader, self.assertRaisesRegex(TesseraError, "no image"):
            reader[0]

    @unittest.skipUnless(shutil.which("dcmcjpls") and pydicom, "dcmcjpls or pydicom is missing")
    def test_near_lossless_jpeg_ls(self) -> None:
        """DCMTK codes it, and is the witness."""
        for name in ("dicom/us/loop_grey.dcm", "dicom/us/sector_rgb.dcm", "dicom/cr/chest.dcm"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                lossy, back = pathlib.Path(folder, "lossy.dcm"), pathlib.Path(folder, "back.dcm")
                for near in ("2", "9"):
                    subprocess.run(["dcmcjpls", "+en", "+md", near, str(DATA / name), str(lossy)], check=True)
                    subprocess.run(["dcmdjpls", str(lossy), str(back)], check=True)
                    data = lossy.read_bytes()
                    wanted = pydicom.dcmread(back)
                    pixels = wanted.pixel_array.reshape(-1, wanted.Rows, wanted.Columns, wanted.SamplesPerPixel)
                    self.check(data, streams_of(data), [np.squeeze(frame) for frame in pixels], 0)

    @unittest.skipUnless(Image, "Pillow is missing")
    def test_fault_in_a_unit(self) -> None:
        """A damaged stream is packed up to its fault."""
        streams = tiles(9)
        hurt = bytearray(streams[4])
        hurt[len(hurt) * 3 // 4 : len(hurt) * 3 // 4 + 40] = bytes(40)
        whole = len(tessera.compress(dicom_of_jpeg(streams, 96, 128)))
        streams[4] = bytes(hurt)
        coded = tessera.compress(dicom_of_jpeg(streams, 96, 128))
        self.assertLess(len(coded), whole + len(hurt) // 3)  # it was the whole stream: 0.75 of it is packed
        with tessera.open(coded) as reader:
            self.assertEqual([reader.stream(k) for k in range(9)], streams)

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
