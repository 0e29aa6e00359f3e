"""The Zarr codecs: formats 3 and 2, what io/ZARR.md says of configurations and bytes, hostile bytes."""

import doctest
import hashlib
import importlib
import json
import re
import subprocess
import sys
import threading
import unittest

import numpy as np
import tessera
import zarr_entry_points
from data import ROOT, Case, ramp
from tessera import Status, TesseraError

zarr_entry_points.install()
try:
    import numcodecs
    import zarr
    from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec, TransposeCodec
    from zarr.storage import MemoryStore
except ImportError as missing:
    raise unittest.SkipTest(f"{missing.name} is not installed") from None

from tessera import _chunks
from tessera.numcodecs import Tessera
from tessera.zarr import TesseraCodec

PAGE = (ROOT / "io" / "ZARR.md").read_text()
TYPES = ("int8", "uint8", "int16", "uint16")
FULL = {"version": 1, "effort": 5, "max_error": 0, "components": 1, "depth": 1}


def create(array, chunks, store=None, **options):
    settings = {name: options.pop(name) for name in ("effort", "max_error", "components", "depth") if name in options}
    options.setdefault("serializer", TesseraCodec(**settings))
    options.setdefault("compressors", None)
    return zarr.create_array(store or MemoryStore(), data=array, chunks=chunks, **options)


def settings(**changes):
    return _chunks.Configuration(**{name: value for name, value in {**FULL, **changes}.items() if name != "version"})


def encode(array, **changes):
    return _chunks.encode(array, settings(**changes))


def decode(data, shape, dtype, **changes):
    return _chunks.decode(np.frombuffer(data, np.uint8), settings(**changes), shape, np.dtype(dtype))


def another_runs_in(work) -> bool:
    """Whether a thread that waits for the GIL alone runs before `work` returns."""
    ran, go = [], threading.Event()
    thread = threading.Thread(target=lambda: (go.wait(), ran.append(True)))
    thread.start()
    go.set()
    work()
    did_run = bool(ran)
    thread.join()
    return did_run


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


class RoundTripTest(Case):
    def test_shapes_and_types(self) -> None:
        cases = [
            ((70, 50), (32, 24), {}), ((70, 50), (70, 50), {"effort": 1}), ((9, 70, 50), (4, 32, 24), {}),
            ((9, 70, 50), (1, 70, 50), {}), ((9, 70, 50), (4, 32, 24), {"depth": 2}),
            ((9, 70, 50), (6, 32, 50), {"depth": 3}), ((9, 70, 50), (8, 70, 50), {"depth": 4, "effort": 9}),
            ((2, 3, 5, 40, 50), (1, 2, 3, 40, 32), {}), ((70, 50, 3), (32, 24, 3), {"components": 3}),
            ((5, 40, 50, 3), (2, 40, 32, 3), {"components": 3}), ((40, 50, 2), (40, 50, 2), {"components": 2}),
            ((40, 50, 4), (20, 50, 4), {"components": 4}), ((1, 1), (1, 1), {}), ((4, 1, 1), (2, 1, 1), {"depth": 2}),
        ]
        for dtype in TYPES:
            for shape, chunks, options in cases:
                with self.subTest(dtype=dtype, shape=shape, chunks=chunks, **options):
                    array = ramp(shape, dtype)
                    back = create(array, chunks, **options)[...]
                    self.assertEqual(back.dtype, array.dtype)
                    np.testing.assert_array_equal(back, array)

    def test_bit_depths(self) -> None:
        generator = np.random.default_rng(2)
        for dtype in TYPES:
            info = np.iinfo(dtype)
            for bits in (1, 2, 7, 8, 9, 12, 15, 16):
                if bits > info.bits:
                    continue
                low = -(1 << bits - 1) if info.min < 0 else 0
                values = generator.integers(low, low + (1 << bits), (8, 30, 40)).astype(dtype)
                for depth in (1, 4):
                    np.testing.assert_array_equal(create(values, values.shape, depth=depth)[...], values)
            for value in (info.min, 0, 1, info.max):
                flat = np.full((3, 20, 30), value, dtype)
                np.testing.assert_array_equal(decode(encode(flat), flat.shape, dtype), flat)
            ends = np.where(generator.integers(0, 2, (40, 50)), info.min, info.max).astype(dtype)
            np.testing.assert_array_equal(create(ends, (20, 50))[...], ends)

    def test_layouts_in_memory(self) -> None:
        wide = ramp((6, 80, 90))
        for array in (wide[:, ::2, 1::3], wide.transpose(0, 2, 1), np.asfortranarray(wide), wide[::-1], wide.astype(">u2")):
            for depth in (1, 3):
                got = decode(encode(array, depth=depth), array.shape, array.dtype, depth=depth)
                self.assertEqual(got.dtype, array.dtype)
                np.testing.assert_array_equal(got, array)
        self.assertEqual(encode(wide), encode(wide.astype(">u2")))

    def test_max_error(self) -> None:
        for dtype in TYPES:
            array = ramp((6, 90, 80), dtype)
            array[:, :5] = 0
            sizes = []
            for most in (0, 1, 4):
                for options in ({}, {"depth": 2}):
                    stored = create(array, (6, 64, 80), max_error=most, **options)
                    error = np.abs(stored[...].astype(int) - array).max()
                    self.assertTrue(error == 0 if most == 0 else 0 < error <= most, (dtype, most, error))
                    self.assertFalse(stored[:, :5].any())
                sizes.append(stored.nbytes_stored())
            self.assertEqual(sizes, sorted(sizes, reverse=True))

    def test_parts_and_writes(self) -> None:
        array = ramp((9, 70, 50))
        stored = create(np.zeros_like(array), (4, 32, 24), fill_value=7)
        stored[2:9, 10:, 3:] = array[2:9, 10:, 3:]
        expected = np.zeros_like(array)
        expected[2:9, 10:, 3:] = array[2:9, 10:, 3:]
        np.testing.assert_array_equal(stored[...], expected)
        np.testing.assert_array_equal(stored[3, 20:40:3, 5], expected[3, 20:40:3, 5])
        empty = zarr.create_array(MemoryStore(), shape=(8, 8), chunks=(4, 4), dtype="int16", fill_value=-3,
                                  serializer=TesseraCodec(), compressors=None)
        self.assertTrue((empty[...] == -3).all())

    def test_sharding(self) -> None:
        array = ramp((9, 70, 50))
        stored = create(array, (3, 16, 25), shards=(6, 32, 50), depth=3)
        self.assertIsInstance(stored.metadata.codecs[0], ShardingCodec)
        np.testing.assert_array_equal(stored[...], array)
        np.testing.assert_array_equal(stored[4, 17:20, 30], array[4, 17:20, 30])

    def test_transpose(self) -> None:
        columns_first = ramp((50, 40, 6))  # as of NIfTI: the planes are on the last axis
        planes_first = ramp((3, 40, 50), np.uint8)  # components on the first
        for array, order, options in ((columns_first, (2, 1, 0), {"depth": 2}), (planes_first, (1, 2, 0), {"components": 3})):
            stored = create(array, array.shape, filters=[TransposeCodec(order=order)], **options)
            np.testing.assert_array_equal(stored[...], array)


class PipelineTest(Case):
    """Metadata, other processes, threads."""

    def store(self, **options):
        array = ramp((9, 70, 50), np.int16)
        create(array, (4, 32, 24), str(self.folder / "a.zarr"), **options)
        return self.folder / "a.zarr", array

    def test_metadata(self) -> None:
        path, array = self.store(effort=3, max_error=0, depth=2)
        written = json.loads((path / "zarr.json").read_text())["codecs"]
        self.assertEqual(written, [{"name": "tessera", "configuration": {
            "version": 1, "effort": 3, "max_error": 0, "components": 1, "depth": 2}}])
        opened = zarr.open_array(path)
        self.assertEqual(opened.metadata.codecs, (TesseraCodec(effort=3, depth=2),))
        self.assertEqual(TesseraCodec.from_dict(opened.metadata.codecs[0].to_dict()), TesseraCodec(effort=3, depth=2))
        again = zarr.create_array(MemoryStore(), data=array, chunks=(4, 32, 24), serializer=written[0], compressors=None)
        np.testing.assert_array_equal(again[...], array)

    def test_consolidated(self) -> None:
        array = ramp((9, 70, 50), np.int16)
        for form in (2, 3):
            path = self.folder / f"group{form}.zarr"
            group = zarr.open_group(path, mode="w", zarr_format=form)
            codec = {"compressors": Tessera(shape=(4, 32, 24), dtype="<i2")} if form == 2 else {
                "serializer": TesseraCodec(), "compressors": None}
            group.create_array("ct", shape=array.shape, dtype=array.dtype, chunks=(4, 32, 24), **codec)[...] = array
            zarr.consolidate_metadata(group.store)
            np.testing.assert_array_equal(zarr.open_consolidated(path)["ct"][...], array)

    def other_process(self, *arguments):
        told = subprocess.run([sys.executable, ROOT / "tests" / "python" / "zarr_work.py", *arguments], check=True,
                              capture_output=True, text=True).stdout.split()
        return told[1], told[2]

    def test_another_process(self) -> None:
        path, array = self.store()
        expected = ("False", hashlib.sha256(array.tobytes()).hexdigest())
        self.assertEqual(self.other_process(path), expected)
        old = self.folder / "b.zarr"
        zarr.create_array(old, data=array, chunks=(4, 32, 24), zarr_format=2,
                          compressors=Tessera(shape=(4, 32, 24), dtype="<i2"))
        self.assertEqual(self.other_process(old), expected)

    def test_threads(self) -> None:
        path, array = self.store()
        wrong = []

        def work(seed: int) -> None:
            stored = zarr.open_array(path)
            for plane in np.random.default_rng(seed).integers(0, 9, 15):
                if not np.array_equal(stored[plane], array[plane]):
                    wrong.append(plane)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_other_threads_run_meanwhile(self) -> None:
        """Python takes the GIL from no thread here, so another one runs only where the call gives it up."""
        array = np.random.default_rng(1).integers(0, 4096, (8, 1024, 1024), np.uint16)
        data = encode(array, effort=1)
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1000)
        for work in (lambda: encode(array, effort=9), lambda: decode(data, array.shape, array.dtype)):
            self.assertTrue(any(another_runs_in(work) for _ in range(50)))


class SpecificationTest(Case):
    def test_payload_is_that_of_the_format(self) -> None:
        """FORMAT.md 5.5: what stands in the sections F and T of a file of the same frame."""
        for dtype in TYPES:
            array = ramp((300, 400), dtype)
            array[::2] ^= np.random.default_rng(1).integers(0, 64, (150, 400)).astype(dtype)
            data, at, bodies = tessera.compress(array), 4, {"F": [], "T": []}
            while data[at] not in b"I":
                size, begin = varint(data, at + 1)
                _, body = varint(data, begin)  # the frame's number
                if data[at] == ord("T"):
                    _, body = varint(data, body)
                bodies.setdefault(chr(data[at]), []).append(data[body : begin + size])
                at = begin + size + 8
            payload, parts, at = encode(array), [], 0
            while at < len(payload):
                size, at = varint(payload, at)
                parts.append(payload[at : at + size])
                at += size
            self.assertEqual(at, len(payload))
            self.assertGreater(len(parts), 2)
            self.assertTrue(parts == bodies["F"] + bodies["T"])

    def test_one_frame_is_a_payload(self) -> None:
        array = ramp((5, 60, 70), np.int16)
        self.assertEqual(encode(array), tessera.encode(array))
        colours = ramp((60, 70, 3), np.uint8)
        self.assertEqual(encode(colours, components=3), tessera.encode(colours))
        units = array[:4].reshape(2, 2, 60, 70).transpose(0, 2, 3, 1)
        self.assertEqual(encode(array[:4], depth=2), tessera.encode(units, components=2))

    def test_many_frames(self) -> None:
        for shape, depth, count in [((300, 256, 6), 1, 2), ((256, 256, 6), 1, 2), ((255, 257, 6), 1, 1), ((3, 40000, 2), 1, 3),
                                    ((600, 256, 6), 2, 2), ((7, 20000, 2), 1, 3)]:
            with self.subTest(shape=shape, depth=depth):
                array = ramp(shape, np.int16)
                data = encode(array, depth=depth)
                np.testing.assert_array_equal(decode(data, shape, np.int16, depth=depth), array)
                units, limit = shape[0] // depth, 65535 // shape[1]
                frames = -(-units // limit)
                step = -(-units // frames)
                frames = -(-units // step)
                self.assertEqual(frames, count)
                at = 0
                for i in range(frames):
                    size, at = varint(data, at) if i < frames - 1 else (len(data) - at, at)
                    if depth == 1:
                        part = array[i * step : (i + 1) * step]
                        np.testing.assert_array_equal(tessera.decode(data[at : at + size], part.shape, np.int16), part)
                    at += size
                self.assertEqual(at, len(data))
                for damaged in (data[:1], data[:-1], b"\xff" * 9 + b"\x01" + data[1:], data + b"\1", data + b"\0\0"):
                    with self.assertRaises(TesseraError):
                        decode(damaged, shape, np.int16, depth=depth)

    def test_example_of_the_page(self) -> None:
        text = PAGE.split("## 6. ")[1]
        configuration = json.loads(re.search(r"```json\n(.*?)```", text, re.S).group(1))["configuration"]
        data = bytes.fromhex("".join(re.findall(r"^[0-9a-f]{2}  ((?:[0-9a-f]{2} ?)+)", text, re.M)))
        rows = [[int(cell) for cell in line.split()] for line in re.findall(r"^plane \d: (.*)$", text, re.M)]
        array = np.array(rows, np.int16).reshape(2, 2, 3)
        made = _chunks.Configuration.from_dict(configuration)
        np.testing.assert_array_equal(_chunks.decode(np.frombuffer(data, np.uint8), made, array.shape, array.dtype), array)

    def test_configurations_of_the_page(self) -> None:
        first, second = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.S)[:2])
        self.assertEqual(TesseraCodec.from_dict(first).to_dict(), first)
        self.assertEqual(numcodecs.get_codec(second).get_config(), second)


class ConfigurationTest(Case):
    def check(self, kind, words, call) -> None:
        with self.assertRaises(kind) as caught:
            call()
        text = str(caught.exception)
        self.assertIn(words, text)
        self.assertIn("tessera codec", text)
        self.assertNotIn("\n", text)

    def open(self, configuration):
        return TesseraCodec.from_dict({"name": "tessera", "configuration": configuration})

    def test_parameters_are_required(self) -> None:
        for name in FULL:
            part = {key: value for key, value in FULL.items() if key != name}
            self.check(ValueError, f"lacks {name}", lambda: self.open(part))
            old = {"id": "tessera", "shape": [4, 4], "dtype": "<u2", **part}
            self.check(ValueError, f"lacks {name}", lambda: numcodecs.get_codec(old))
        for name in ("shape", "dtype"):
            old = {key: value for key, value in {"shape": [4, 4], "dtype": "<u2", **FULL}.items() if key != name}
            self.check(ValueError, f"lacks {name}", lambda: numcodecs.get_codec({"id": "tessera", **old}))
        self.check(ValueError, "lacks version, effort, max_error, components, depth",
                   lambda: TesseraCodec.from_dict({"name": "tessera"}))

    def test_no_other_is_known(self) -> None:
        self.check(ValueError, "does not know bits", lambda: self.open({**FULL, "bits": 12}))
        self.check(ValueError, "does not know shape", lambda: self.open({**FULL, "shape": [4, 4]}))
        self.check(ValueError, "does not know level", lambda: numcodecs.get_codec(
            {"id": "tessera", "shape": [4, 4], "dtype": "<u2", "level": 1, **FULL}))
        self.check(ValueError, "does not know level", lambda: TesseraCodec.from_dict(
            {"name": "tessera", "configuration": FULL, "level": 1}))

    def test_version(self) -> None:
        for version in (0, 2, "1", True, None):
            self.check(ValueError, "this package knows 1", lambda: self.open({"version": version, "more": 1}))

    def test_values(self) -> None:
        for name, wrong in [("effort", (0, 10, "5", 5.0, None, True)), ("max_error", (-1, 32768, 0.5)),
                            ("components", (0, 5, [3])), ("depth", (0, 5, "2"))]:
            for value in wrong:
                self.check(ValueError, f"{name} is {value!r}", lambda: self.open({**FULL, name: value}))
                self.check(ValueError, f"{name} is {value!r}", lambda: TesseraCodec(**{name: value}))
        self.check(ValueError, "one of them must be 1", lambda: TesseraCodec(components=3, depth=2))
        self.check(ValueError, "not an object", lambda: self.open([1]))
        self.check(ValueError, "is not the tessera codec", lambda: TesseraCodec.from_dict({"name": "t"}))
        self.check(ValueError, "not a list of integers", lambda: Tessera.from_config({**FULL, "shape": "4", "dtype": "<u2"}))
        self.assertEqual(TesseraCodec(effort=np.int64(3)).to_dict()["configuration"]["effort"], 3)

    def test_types(self) -> None:
        for dtype in ("bool", "int32", "uint32", "int64", "float16", "float32", "complex64"):
            self.check(TypeError, f"not {dtype}", lambda: zarr.create_array(
                MemoryStore(), shape=(8, 8), chunks=(8, 8), dtype=dtype, serializer=TesseraCodec()))
            self.check(TypeError, f"not {dtype}", lambda: encode(np.zeros((8, 8), dtype)))
            self.check(TypeError, f"not {dtype}", lambda: Tessera(shape=(8, 8), dtype=dtype))

    def test_shapes(self) -> None:
        for shape, options, words in [
            ((8,), {}, "2 axes or more"), ((8, 3), {"components": 3}, "3 axes or more"),
            ((8, 8, 4), {"components": 3}, "the last axis of the shape (8, 8, 4)"), ((3, 8, 8), {"depth": 2}, "the 3 planes"),
            ((8, 8), {"depth": 2}, "the 1 planes"), ((1, 65536), {}, "is too large"), ((65536, 1), {}, "is too large"),
        ]:
            array = np.zeros(shape, np.uint8)
            self.check(ValueError, words, lambda: create(array, shape, config={"write_empty_chunks": True}, **options))
            self.check(ValueError, words, lambda: Tessera(shape=shape, dtype="u1", **options))
        self.check(ValueError, "is too large", lambda: Tessera(shape=(20000, 20000), dtype="u1"))


class Format2Test(Case):
    def test_round_trip(self) -> None:
        for dtype in ("|i1", "|u1", "<i2", ">i2", "<u2", ">u2"):
            for order in "CF":
                for options in ({}, {"depth": 2}, {"max_error": 1}):
                    array = ramp((9, 70, 50), dtype)
                    chunks = (4, 32, 24)
                    shape = chunks if order == "C" else chunks[::-1]
                    codec = Tessera(shape=shape, dtype=dtype, **options)
                    stored = zarr.create_array(MemoryStore(), data=array, chunks=chunks, zarr_format=2, order=order,
                                               compressors=codec)
                    error = np.abs(stored[...].astype(int) - array).max()
                    self.assertLessEqual(error, options.get("max_error", 0))
        colours = ramp((70, 50, 3), np.uint8)
        stored = zarr.create_array(MemoryStore(), data=colours, chunks=(32, 50, 3), zarr_format=2,
                                   compressors=Tessera(shape=(32, 50, 3), dtype="u1", components=3))
        np.testing.assert_array_equal(stored[...], colours)

    def test_metadata(self) -> None:
        array = ramp((9, 70), np.int16)
        path = self.folder / "a.zarr"
        codec = Tessera(shape=(4, 32), dtype="<i2", effort=2)
        zarr.create_array(path, data=array, chunks=(4, 32), zarr_format=2, compressors=codec)
        written = json.loads((path / ".zarray").read_text())["compressor"]
        self.assertEqual(written, {"id": "tessera", "version": 1, "effort": 2, "max_error": 0, "components": 1, "depth": 1,
                                   "shape": [4, 32], "dtype": "<i2"})
        self.assertEqual(zarr.open_array(path).metadata.compressor, codec)
        np.testing.assert_array_equal(zarr.open_array(path)[...], array)

    def test_codec(self) -> None:
        array = ramp((9, 70), np.int16)
        codec = Tessera(shape=array.shape, dtype=array.dtype)
        self.assertEqual(eval(repr(codec), {"Tessera": Tessera}), codec)
        data = codec.encode(array)
        self.assertEqual(data, codec.encode(array.tobytes()))
        out = np.empty_like(array)
        codec.decode(data, out)
        np.testing.assert_array_equal(out, array)
        for given in (array.astype(np.float32), array.astype(np.uint16)):
            with self.assertRaisesRegex(TypeError, "was given"):
                codec.encode(given)
        with self.assertRaisesRegex(ValueError, "has 1260 bytes, and was given 1258"):
            codec.encode(array.reshape(-1)[:-1])


class ExampleTest(Case):
    def test_page(self) -> None:
        try:
            import xarray  # noqa: F401
        except ImportError:
            self.skipTest("xarray is not installed")
        result = doctest.testfile(str(ROOT / "app" / "python" / "zarr.md"), module_relative=False)
        self.assertEqual(result.failed, 0)
        self.assertGreater(result.attempted, 15)

    def test_docstrings(self) -> None:
        for name in ("numcodecs", "zarr"):
            result = doctest.testmod(importlib.import_module(f"tessera.{name}"))
            self.assertEqual(result.failed, 0)
            self.assertGreater(result.attempted, 2)


class HostileTest(Case):
    def test_damage(self) -> None:
        generator = np.random.default_rng(4)
        for array, options in [(ramp((4, 64, 64)), {}), (ramp((4, 64, 64), np.int8), {"depth": 4}),
                               (ramp((64, 64, 3), np.uint8), {"components": 3}),
                               (ramp((4, 64, 64)), {"effort": 9}), (ramp((4, 64, 64)), {"max_error": 2})]:
            array = array ^ generator.integers(0, 16, array.shape).astype(array.dtype)
            data, refused = encode(array, **options), 0
            for _ in range(300):
                wrong = bytearray(data)
                for _ in range(generator.integers(1, 4)):
                    wrong[generator.integers(0, len(wrong) if generator.integers(2) else 200)] ^= generator.integers(1, 256)
                try:
                    decode(wrong, array.shape, array.dtype, **options)
                except TesseraError as error:
                    self.assertEqual(error.status, Status.CORRUPT)
                    refused += 1
            self.assertGreater(refused, 100)
            for end in [*range(0, 40), *range(40, len(data), 97), len(data) - 1]:
                with self.assertRaises(TesseraError) as caught:
                    decode(data[:end], array.shape, array.dtype, **options)
                self.assertEqual(caught.exception.status, Status.CORRUPT)
            np.testing.assert_array_equal(decode(data + b"\0", array.shape, array.dtype, **options),
                                          decode(data, array.shape, array.dtype, **options))  # FORMAT.md 5.5
            for wrong in (data + b"\0\0", data + b"\1", data + data, b"", b"\0", b"\xff" * 100, generator.bytes(5000), bytes(5000)):
                with self.assertRaises(TesseraError):
                    decode(wrong, array.shape, array.dtype, **options)
            for shape in ((4, 64, 63), (4, 65, 64), (1, 1)):
                if "components" not in options and "depth" not in options:
                    with self.assertRaises(TesseraError):
                        decode(data, shape, array.dtype, **options)

    def test_the_schema_for_the_registry(self) -> None:
        """app/python/zarr-extension takes what the codec takes, and nothing else."""
        try:
            import jsonschema
        except ImportError:
            self.skipTest("jsonschema is not installed")
        schema = json.loads((ROOT / "app" / "python" / "zarr-extension" / "schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        valid = jsonschema.Draft202012Validator(schema).is_valid
        taken = 0
        for changes in [{}, {"effort": 9}, {"effort": 0}, {"effort": 10}, {"effort": 5.5}, {"max_error": 32767}, {"max_error": 32768},
                        {"max_error": -1}, {"components": 4}, {"components": 5}, {"depth": 4}, {"depth": 0}, {"depth": 2, "components": 3},
                        {"version": 2}, {"other": 1}, {"version": None}, {"depth": None}]:
            given = {name: value for name, value in {**FULL, **changes}.items() if value is not None}
            codec = {"name": "tessera", "configuration": given}
            try:
                self.assertEqual(TesseraCodec.from_dict(codec).to_dict(), codec)
                is_taken = True
            except ValueError:
                is_taken = False
            self.assertEqual(valid(codec), is_taken, codec)
            taken += is_taken
        self.assertEqual(taken, 5)

    def test_damage_in_a_store(self) -> None:
        array = ramp((8, 64, 64), np.int16)
        for checksum, kind in ((None, TesseraError), (Crc32cCodec(), ValueError)):
            path = self.folder / f"{kind.__name__}.zarr"
            stored = create(array, (4, 64, 64), path, compressors=checksum)
            chunk = path / "c" / "1" / "0" / "0"
            data = bytearray(chunk.read_bytes())
            data[5] ^= 255
            chunk.write_bytes(data)
            np.testing.assert_array_equal(stored[:4], array[:4])
            with self.assertRaises(kind):
                stored[4:]

    def test_memory(self) -> None:
        """A chunk of a few samples that pretends to millions of tiles, models and frames."""
        code = """
import resource, sys
import numpy as np
from tessera import TesseraError, _chunks
settings = _chunks.Configuration(5, 0, 1, 1)
array = np.zeros((8, 8), np.uint16)
good = np.frombuffer(_chunks.encode(array, settings), np.uint8)
_chunks.decode(good, settings, (8, 8), array.dtype)
wrong = [np.concatenate([good, np.zeros(40 << 20, np.uint8)]), np.full(1 << 20, 255, np.uint8)]
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + (100 << 20), held + (100 << 20)))
for data in wrong:
    for shape in ((8, 8), (3, 40000, 2)):
        try:
            _chunks.decode(data, settings, shape, array.dtype)
        except TesseraError as error:
            print(error.status.name)
"""
        told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
        self.assertEqual(told, ["CORRUPT"] * 4)
