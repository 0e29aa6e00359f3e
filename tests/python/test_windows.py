"""Windows and slopes of DICOM: what a report tells of each is computed again by pydicom and numpy."""

import json
import math
import subprocess
import unittest
import warnings
from pathlib import Path

import numpy as np
from data import PROGRAM, Case

import tessera

try:
    import pydicom
    from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
    from pydicom.sequence import Sequence
    from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian, generate_uid
except ImportError:
    pydicom = None


def picture(frames=1, side=96, least=0, most=4000, seed=1, noise=40):
    """Frames that have something to lose at every value."""
    y, x = np.mgrid[:side, :side]
    random = np.random.default_rng(seed)
    wave = (np.sin(x / 9) * np.cos(y / 13) + 1) / 2
    return np.stack([np.clip(least + (most - least) * wave * (1 - f / (3 * frames)) +
                             random.normal(0, noise, (side, side)), least, most) for f in range(frames)]).astype(np.int64)


def data_set(pixels, modality="MR", bits=12, signed=False, implicit=False, **elements):
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ImplicitVRLittleEndian if implicit else ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.4.1"
    meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=[modality, str(pixels.sum()), str(elements)])
    d = FileDataset("", {}, file_meta=meta, preamble=bytes(128))
    d.SOPClassUID, d.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    d.StudyInstanceUID, d.SeriesInstanceUID = "1.2.3.1", "1.2.3.2"
    d.ImageType, d.Modality = ["ORIGINAL", "PRIMARY"], modality
    d.SamplesPerPixel, d.PhotometricInterpretation = 1, "MONOCHROME2"
    d.Rows, d.Columns = pixels.shape[1:]
    if len(pixels) > 1:
        d.NumberOfFrames = len(pixels)
    d.BitsAllocated, d.BitsStored, d.HighBit, d.PixelRepresentation = 16, bits, bits - 1, int(signed)
    for keyword, value in elements.items():
        setattr(d, keyword, value)
    d.PixelData = pixels.astype("<i2" if signed else "<u2").tobytes()
    return d


def item(**elements):
    d = Dataset()
    for keyword, value in elements.items():
        setattr(d, keyword, value)
    return d


def looks(center, width, function=None):
    return item(WindowCenter=center, WindowWidth=width, **({"VOILUTFunction": function} if function else {}))


def lut(first, entries, bits=16, vr="US"):
    d = Dataset()
    d.add_new("LUTDescriptor", vr, [len(entries) % 65536, first, bits])
    d.add_new("LUTData", "OW", np.asarray(entries).astype("<u2").tobytes())
    return d


def groups(windows=None, slope=None):
    d = Dataset()
    if windows is not None:
        d.FrameVOILUTSequence = Sequence(windows)
    if slope is not None:
        d.PixelValueTransformationSequence = Sequence(
            [item(RescaleSlope=slope[0], RescaleIntercept=slope[1], RescaleType="US")])
    return d


@unittest.skipUnless(pydicom, "pydicom is not installed")
class WindowsTest(Case):
    def setUp(self) -> None:
        super().setUp()
        warnings.simplefilter("ignore")

    def save(self, d, name="a.dcm") -> Path:
        path = self.folder / name
        d.save_as(path, implicit_vr=d.file_meta.TransferSyntaxUID == ImplicitVRLittleEndian, little_endian=True)
        return path

    def coded(self, d, **options):
        """The report of a file, its samples, and those that come back."""
        path = self.save(d)
        report = tessera.compress_file(path, self.folder / "a.tsr", overwrite=True, **(options or {"qp": 26}))
        tessera.restore_file(self.folder / "a.tsr", self.folder / "b.dcm", overwrite=True)
        shape = (-1, d.Rows, d.Columns)
        kind = "<i2" if d.PixelRepresentation else "<u2"
        before = np.frombuffer(d.PixelData, kind).reshape(shape).astype(np.int64)
        after = np.frombuffer(pydicom.dcmread(self.folder / "b.dcm").PixelData, kind).reshape(shape).astype(np.int64)
        self.assertFalse(report.lossless, report.reason)
        return report, before, after

    def agree(self, report, before, after, expected, slopes=None):
        """expected: for each window its center, its width, and of each frame, the mask of what is inside."""
        slopes = np.asarray(slopes if slopes is not None else [1.0] * len(before))[:, None, None]
        error = (after - before) * slopes
        self.assertEqual([(w.center, w.width) for w in report.windows], [e[:2] for e in expected])
        for window, (_, width, inside) in zip(report.windows, expected):
            self.assertEqual(window.samples, int(inside.sum()))
            if not inside.any():
                continue
            rmse = math.sqrt((error[inside] ** 2).mean())
            self.assertGreater(rmse, 0)
            self.assertLess(abs(window.rmse - rmse), 1e-4 * rmse)
            self.assertLess(abs(window.psnr_db - 20 * math.log10(width / rmse)), 1e-3)
        units = report.range * abs(slopes).max()
        self.assertLess(abs(report.psnr_db - 10 * math.log10(units**2 / (error**2).mean())), 1e-3)

    @staticmethod
    def linear(values, center, width):
        return (values > center - 0.5 - (width - 1) / 2) & (values <= center - 0.5 + (width - 1) / 2)

    @staticmethod
    def exact(values, center, width):
        return (values > center - width / 2) & (values <= center + width / 2)

    def test_shared_groups(self) -> None:
        for implicit in (False, True):
            d = data_set(picture(3), NumberOfFrames=3, implicit=implicit)
            d.SharedFunctionalGroupsSequence = Sequence([groups([looks([900, 2000.5], [700, 300])], ("2", "-100"))])
            d.PerFrameFunctionalGroupsSequence = Sequence([Dataset() for _ in range(3)])
            report, before, after = self.coded(d)
            values = 2 * before - 100
            self.agree(report, before, after, [(900, 700, self.linear(values, 900, 700)),
                                               (2000.5, 300, self.linear(values, 2000.5, 300))], [2, 2, 2])
            self.assertEqual((report.windows_left_out, report.windows_note), (0, ""))

    def test_small_and_large_units(self) -> None:
        """A window is told in millionths of a unit; one that a file cannot tell is left out, and the file comes back."""
        for slope, center, width, is_told in (("1e-6", "0.0015", "0.0025", True), ("1e-7", "0.00015", "0.0003", True),
                                              ("1e6", "1.5e9", "8e8", True), ("1e-12", "1.5e-9", "3e-9", False),
                                              ("1e-50", "1e-47", "5e-47", False), ("1e40", "1e43", "8e42", False),
                                              ("1e10", "1.5e13", "8e12", False)):
            with self.subTest(slope=slope):
                d = data_set(picture(), WindowCenter=center, WindowWidth=width, VOILUTFunction="LINEAR_EXACT",
                             RescaleSlope=slope, RescaleIntercept="0")
                report, before, after = self.coded(d, qp=20, verify="none")
                self.assertEqual((len(report.windows), report.windows_left_out), (1, 0) if is_told else (0, 1))
                if is_told:
                    inside = self.exact(before * float(slope), float(center), float(width))
                    rmse = float(slope) * math.sqrt(((after - before)[inside] ** 2).mean())
                    self.assertEqual((report.windows[0].center, report.windows[0].width), (float(center), float(width)))
                    self.assertLess(abs(report.windows[0].psnr_db - 20 * math.log10(float(width) / rmse)), 1e-3)

    def test_coarse_steps_of_slices_with_small_slopes(self) -> None:
        """A series has one range in physical units: a step may be wider than a QP of 51 in the slices with small slopes."""
        paths = []
        for k, slope in enumerate(("1", "0.2", "1", "0.2")):
            d = data_set(picture(seed=k), modality="PT", RescaleSlope=slope, RescaleIntercept="0")
            paths.append(self.save(d, f"{k}.dcm"))
        results = tessera.compress_set(paths, self.folder / "out", qp=40)
        self.assertEqual([result.error for result in results], [None] * 4)
        run = subprocess.run([PROGRAM, "compress", "-q", "--qp", "40", "--series", self.folder / "s.tsr", *paths])
        self.assertEqual(run.returncode, 0)

    def test_shards_with_kept_values_have_one_range(self) -> None:
        (self.folder / "set").mkdir()
        for k in range(8):
            pixels = picture(seed=k, most=700)
            pixels[:, :8] = 3000 + k
            self.save(data_set(pixels, InstanceNumber=k), f"set/{k}.dcm")
        found = []
        for more in ([], ["--shard", "1/2"], ["--shard", "2/2"], ["--shard", "1/4"]):
            run = subprocess.run([PROGRAM, "compress", "-r", "--json", "--psnr", "45", "--keep", "3000..3050", *more,
                                  self.folder / "set", "-o", self.folder / f"out{len(found)}"], capture_output=True, text=True)
            lines = [json.loads(line) for line in run.stdout.splitlines()]
            found.append({line["range"] for line in lines if "file" in line})
        self.assertEqual(len(found[0]), 1)
        self.assertLess(max(found[0]), 1000)
        self.assertEqual(found, [found[0]] * 4)

    def test_functions(self) -> None:
        """Of LINEAR_EXACT and SIGMOID the whole width is inside, of LINEAR one value less."""
        for function, inside in (("LINEAR", self.linear), ("LINEAR_EXACT", self.exact), ("SIGMOID", self.exact)):
            d = data_set(picture(), WindowCenter="1000", WindowWidth="600", VOILUTFunction=function)
            report, before, after = self.coded(d)
            self.agree(report, before, after, [(1000, 600, inside(before, 1000, 600))])
        self.assertNotEqual(self.linear(before, 1000, 600).sum(), self.exact(before, 1000, 600).sum())

    def test_frames_have_windows_of_their_own(self) -> None:
        d = data_set(picture(4))
        d.SharedFunctionalGroupsSequence = Sequence([Dataset()])
        d.PerFrameFunctionalGroupsSequence = Sequence([groups([looks(w, 2 * w)]) for w in (500, 800, 500, 1500)])
        report, before, after = self.coded(d)
        expected = []
        for center, frames in ((500, (0, 2)), (800, (1,)), (1500, (3,))):
            inside = self.linear(before, center, 2 * center)
            inside[[f for f in range(4) if f not in frames]] = False
            expected.append((center, 2 * center, inside))
        self.agree(report, before, after, expected)

    def test_most_used_windows_are_measured(self) -> None:
        """Four of seven: those that most frames name, in the order of the file."""
        d = data_set(picture(10, 48))
        centers = [600, 700, 800, 900, 900, 1000, 1000, 1000, 1100, 1200]
        d.PerFrameFunctionalGroupsSequence = Sequence([groups([looks(c, 800)]) for c in centers])
        report, _, _ = self.coded(d)
        self.assertEqual([w.center for w in report.windows], [600, 700, 900, 1000])
        self.assertEqual(report.windows_left_out, 3)

    def test_windows_that_are_left_out_are_judged(self) -> None:
        """Each in each frame that names it: the worst is told, and a quality holds in it, too."""
        d = data_set(picture(8))
        centers, slopes = [600, 700, 800, 900, 1000, 1100, 1500, 1700], [1, 0.8, 1, 1.25, 1, 0.75, 1, 1.5]
        d.PerFrameFunctionalGroupsSequence = Sequence(
            [groups([looks([c, 2 * c], [2500, 3000])], (str(s), "0")) for c, s in zip(centers, slopes)])
        for options in ({"qp": 26}, {"quality": "diagnostic"}):
            report, before, after = self.coded(d, **options)
            told = {w.center for w in report.windows}
            least = math.inf
            for f, (c, slope) in enumerate(zip(centers, slopes)):
                for center, width in ((c, 2500), (2 * c, 3000)):
                    inside = self.linear(before[f] * slope, center, width)
                    if center in told or inside.sum() < 256:
                        continue
                    rmse = slope * math.sqrt(((after[f] - before[f])[inside] ** 2).mean())
                    least = min(least, 20 * math.log10(max(1, int((width - 1) / slope)) * slope / rmse))
            self.assertLess(abs(report.left_out_psnr_db - least), 1e-3)
        self.assertGreaterEqual(least, 45)
        # Less than 0 dB is less than each floor.
        d = data_set(picture(8, side=160))
        d.PerFrameFunctionalGroupsSequence = Sequence(
            [groups([looks([1500] * 4, [8000, 8001, 8002, 8003])]) if k % 2 else groups([looks(1400 + k, 30)]) for k in range(8)])
        report, _, _ = self.coded(d, psnr=33)
        self.assertLess(report.left_out_psnr_db, 0)
        with self.assertRaises(tessera.TesseraError):
            tessera.compress_file(self.save(d), self.folder / "strict.tsr", psnr=33, least_psnr=30)

    def test_slopes_of_frames(self) -> None:
        """Errors count in physical units; so do windows. The range is that of values times slope / largest slope."""
        slopes = ["-2.5e0", "1.0625", "0.53125", "4.25"]  # the largest values are not those of the largest slope
        intercepts = ["9000", "-50", "3.5", "0"]
        d = data_set(picture(4, most=30000, noise=400), "PT", bits=16)
        d.PerFrameFunctionalGroupsSequence = Sequence(
            [groups([looks("6000", "9000")], s) for s in zip(slopes, intercepts)])
        numbers = np.array([float(s) for s in slopes])
        for options in ({"qp": 26}, {"psnr": 50}, {"quality": "diagnostic"}):
            report, before, after = self.coded(d, **options)
            values = before * numbers[:, None, None] + np.array([float(i) for i in intercepts])[:, None, None]
            self.agree(report, before, after, [(6000, 9000, self.linear(values, 6000, 9000))], numbers)
            weighted = np.sort(np.floor(before * np.abs(numbers)[:, None, None] / 4.25 + 0.5), axis=None)
            ignored = weighted.size // 10000
            self.assertEqual(report.range, weighted[-1 - ignored] - weighted[ignored])
            if "psnr" in options:
                self.assertTrue(50 <= report.psnr_db <= 50.1, report.psnr_db)
            if "quality" in options:
                self.assertGreaterEqual(report.windows[0].psnr_db, 45)
        with tessera.open(self.folder / "a.tsr") as reader:
            self.assertLess(abs(reader.info.psnr_db - report.psnr_db), 1e-9)

    def test_largest_error_in_a_frame_of_little_weight(self) -> None:
        """The squared error is then less than the square of the largest error, and that is no damage."""
        d = data_set(picture(2, most=30000, noise=400), "PT", bits=16)
        d.PixelData = np.stack([np.full((96, 96), 700), picture(1, most=30000, noise=400)[0]]).astype("<u2").tobytes()
        d.PerFrameFunctionalGroupsSequence = Sequence([groups(None, ("1", "0")), groups(None, ("1e-4", "0"))])
        report, before, after = self.coded(d, qp=40)
        error = (after - before) * np.array([1, 1e-4])[:, None, None]
        self.assertLess((error**2).sum(), report.max_error**2)
        self.assertEqual(subprocess.run([PROGRAM, "test", "-q", self.folder / "a.tsr"], check=False).returncode, 0)

    def test_lookup_table(self) -> None:
        """A VOI LUT is the LINEAR window whose output changes between the same inputs."""
        entries = [0] * 100 + list(range(0, 65000, 100)) + [65000] * 50
        for first, slope, extra in ((600, None, {}), (200, ("0.5", "0"), {"RescaleSlope": "0.5", "RescaleIntercept": "0"})):
            d = data_set(picture(), WindowCenter="2000", WindowWidth="500", **extra)
            d.VOILUTSequence = Sequence([lut(first, entries), lut(first, [7] * 300)])
            report, before, after = self.coded(d)
            low, high = first + 100, first + 100 + 650
            values = before * (0.5 if slope else 1)
            self.agree(report, before, after, [(2000, 500, self.linear(values, 2000, 500)),
                                               ((low + high + 1) / 2, high - low + 1, (values > low) & (values <= high))],
                       [0.5 if slope else 1])

    def test_lookup_table_below_zero(self) -> None:
        d = data_set(picture(least=-1000, most=900, noise=20), bits=16, signed=True)
        d.VOILUTSequence = Sequence([lut(-800, list(range(1000)), vr="SS")])
        report, before, after = self.coded(d)
        self.agree(report, before, after, [(-300, 1000, (before > -800) & (before <= 199))])

    def test_lookup_table_of_frames(self) -> None:
        d = data_set(picture(2))
        d.PerFrameFunctionalGroupsSequence = Sequence(
            [groups([item(VOILUTSequence=Sequence([lut(f * 500, [0] + list(range(1500)))]))]) for f in (1, 2)])
        report, before, after = self.coded(d)
        inside = [(before > f * 500 + 1) & (before <= f * 500 + 1500) for f in (1, 2)]
        inside[0][1] = inside[1][0] = False
        self.agree(report, before, after, [(1251, 1500, inside[0]), (1751, 1500, inside[1])])

    def test_modality_lookup_table(self) -> None:
        """Errors are in stored values, and windows are mapped back, where the table rises or falls."""
        for falls in (False, True):
            made = np.minimum(np.arange(4096) ** 2 // 300, 50000)
            entries = made[::-1] if falls else made
            d = data_set(picture(), "XA", WindowCenter="12000", WindowWidth="16000")
            d.ModalityLUTSequence = Sequence([lut(0, entries)])
            report, before, after = self.coded(d)
            inside = self.linear(entries[before], 12000, 16000)
            at = np.nonzero(self.linear(entries, 12000, 16000))[0]
            self.agree(report, before, after, [((at[0] + at[-1]) / 2, at[-1] - at[0] + 2, inside)])
            self.assertEqual(report.windows_note, "errors and windows are in stored values: it has a Modality LUT")
        d.ModalityLUTSequence = Sequence([lut(0, np.abs(np.arange(4096) - 2000))])
        report, _, _ = self.coded(d)
        self.assertEqual((report.windows, report.windows_left_out), ((), 1))
        self.assertIn("neither rises nor falls", report.windows_note)

    def test_values_that_are_none(self) -> None:
        """Windows of width 0, numbers that are none: no window, and no error."""
        d = data_set(picture(3))
        for center, width in (("40", "0"), ("1e999", "400"), ("40", "-400"), ("", ""), ("40\\50", "300")):
            d.PerFrameFunctionalGroupsSequence = Sequence([groups([looks(None, None)], ("1", "0")) for _ in range(3)])
            path = self.save(d)
            for frame in d.PerFrameFunctionalGroupsSequence:
                frame.FrameVOILUTSequence[0].WindowCenter = center.split("\\")
                frame.FrameVOILUTSequence[0].WindowWidth = width.split("\\")
            try:
                path = self.save(d)
            except (ValueError, OverflowError):
                continue
            report = tessera.compress_file(path, self.folder / "g.tsr", overwrite=True, qp=26)
            self.assertEqual(len(report.windows), center.startswith("40\\"))

    def test_series_with_slopes(self) -> None:
        """Slices of one series have the same noise in physical units, whatever their slopes."""
        paths, slopes = [], [5.0, 1.25, 2.5, 0.4, 3.0, 5.0, 0.9, 2.0]
        for k, slope in enumerate(slopes):
            activity = picture(1, 128, most=20000, seed=k, noise=900)
            d = data_set(np.round(activity / slope).astype(np.int64), "PT", bits=16, RescaleSlope=f"{slope:g}",
                         RescaleIntercept="0", InstanceNumber=str(k))
            paths.append(self.save(d, f"{k}.dcm"))
        for together in (False, True):
            if together:
                made = self.folder / "all.tsr"
                subprocess.run([PROGRAM, "compress", "-q", "--qp", "22", "--series", made, *paths], check=True)
                members = [member[0] for member in tessera.open(made).members]
            else:
                results = tessera.compress_set(paths, self.folder / "set", qp=22)
                members = [tessera.open(result.out)[0] for result in results]
            noise = []
            for path, slope, after in zip(paths, slopes, members):
                before = np.frombuffer(pydicom.dcmread(path).PixelData, "<u2").reshape(128, 128).astype(np.int64)
                noise.append(slope * math.sqrt(((before - np.asarray(after, dtype=np.int64).reshape(128, 128)) ** 2).mean()))
            self.assertLess(max(noise) / min(noise), 1.05, noise)


if __name__ == "__main__":
    unittest.main()
