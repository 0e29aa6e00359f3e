"""Sorts files by the class of the stream inside them. Used by archives.py."""
import collections
import hashlib
import os

SYNTAXES = {
    "1.2.840.10008.1.2": "DICOM native", "1.2.840.10008.1.2.1": "DICOM native", "1.2.840.10008.1.2.2": "DICOM native",
    "1.2.840.10008.1.2.1.99": "DICOM deflated .1.99", "1.2.840.10008.1.2.8.1": "DICOM deflated frames .8.1",
    "1.2.840.10008.1.2.5": "DICOM RLE .5",
    "1.2.840.10008.1.2.4.57": "DICOM JPEG lossless .57", "1.2.840.10008.1.2.4.70": "DICOM JPEG lossless .70",
    "1.2.840.10008.1.2.4.80": "DICOM JPEG-LS .80", "1.2.840.10008.1.2.4.81": "DICOM JPEG-LS near-lossless .81",
    "1.2.840.10008.1.2.4.50": "DICOM JPEG .50", "1.2.840.10008.1.2.4.51": "DICOM JPEG .51",
    "1.2.840.10008.1.2.4.53": "DICOM JPEG .53", "1.2.840.10008.1.2.4.55": "DICOM JPEG .55",
    "1.2.840.10008.1.2.4.90": "DICOM JPEG 2000 lossless .90", "1.2.840.10008.1.2.4.91": "DICOM JPEG 2000 .91",
    "1.2.840.10008.1.2.4.201": "DICOM HTJ2K lossless .201", "1.2.840.10008.1.2.4.202": "DICOM HTJ2K lossless .202",
    "1.2.840.10008.1.2.4.203": "DICOM HTJ2K .203",
}
OTHER_DICOM = "DICOM, other or damaged"
FILES = ["JPEG file", "PNG", "gzip NIfTI", "gzip", "NIfTI", "other"]
JPEG_DICOM = {SYNTAXES["1.2.840.10008.1.2.4.%d" % n] for n in (50, 51, 53, 55)}


def order(name):
    known = list(dict.fromkeys(SYNTAXES.values())) + [OTHER_DICOM] + FILES
    return (known.index(name), name)


def dicom_class(path, data):
    import pydicom
    if data[128:132] != b"DICM" and not path.lower().endswith(".dcm"):
        return None
    try:
        dataset = pydicom.dcmread(path, force=True, stop_before_pixels=True)
        syntax = dataset.file_meta.get("TransferSyntaxUID") if hasattr(dataset, "file_meta") else None
    except Exception:  # whatever breaks pydicom is of the class of damaged files
        return OTHER_DICOM
    if syntax is None:
        return "DICOM native" if len(dataset) else OTHER_DICOM
    return SYNTAXES.get(str(syntax), OTHER_DICOM)


def class_of(path, data):
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return "PNG"
    if data[:3] == b"\xff\xd8\xff":
        return "JPEG file"
    if data[:2] == b"\x1f\x8b":
        return "gzip NIfTI" if path.lower().endswith(".nii.gz") else "gzip"
    if data[344:347] in (b"n+1", b"ni1") or data[4:7] in (b"n+2", b"ni2"):
        return "NIfTI"
    return dicom_class(path, data) or "other"


def sort_files(folders):
    """{class: paths}. Each content once, links and empty files never."""
    classes, seen = collections.defaultdict(list), set()
    for top in folders:
        for where, inner, names in os.walk(top):
            inner.sort()
            for name in sorted(names):
                path = os.path.join(where, name)
                if os.path.islink(path) or name.endswith((".py", ".pyc")):
                    continue
                with open(path, "rb") as file:
                    data = file.read()
                digest = hashlib.sha256(data).digest()
                if data and digest not in seen:
                    seen.add(digest)
                    classes[class_of(path, data)].append(path)
    return classes


def jpeg_streams(path, stream_class):
    """The JPEG streams of a file: itself, or its frames; none if they cannot be had."""
    if stream_class == "JPEG file":
        with open(path, "rb") as file:
            return [file.read()]
    import pydicom
    from pydicom.encaps import generate_frames
    try:
        dataset = pydicom.dcmread(path, force=True)
        return list(generate_frames(dataset.PixelData, number_of_frames=int(dataset.get("NumberOfFrames", 1) or 1)))
    except Exception:  # no pixels, or no frames
        return []


def short(reason):
    """A reason without numbers that differ from file to file."""
    return reason if "transfer syntax" in reason else "".join("N" if c.isdigit() else c for c in reason)


def print_reasons(title, files):
    """files: reason, bytes and .tsr bytes of each. A row for each reason, the most frequent one first."""
    kinds = collections.defaultdict(lambda: [0, 0, 0])
    for reason, size, out in files:
        kinds[short(reason)] = [a + b for a, b in zip(kinds[short(reason)], (1, size, out))]
    if kinds:
        print("\n| %s | files | bytes | .tsr bytes |\n|---|---|---|---|" % title)
    for reason, numbers in sorted(kinds.items(), key=lambda item: -item[1][0]):
        print("| %s | %d | %d | %d |" % (reason, *numbers))
