"""The library's decoders of compressed pixel data as plugins of pydicom 3: JPEG, JPEG-LS, JPEG 2000 and HTJ2K."""

from __future__ import annotations

import io

import numpy as np
import pydicom
from pydicom import uid
from pydicom.encaps import encapsulate
from pydicom.pixels.decoders.base import DecodeRunner, get_decoder

import tessera

__all__ = ["register"]

_SYNTAXES = (uid.JPEGLossless, uid.JPEGLosslessSV1, uid.JPEGLSLossless, uid.JPEGLSNearLossless, uid.JPEG2000Lossless,
             uid.JPEG2000, uid.HTJ2KLossless, uid.HTJ2KLosslessRPCL, uid.HTJ2K, uid.JPEGBaseline8Bit)
DECODER_DEPENDENCIES = {syntax: ("tessera-codec",) for syntax in _SYNTAXES}


def is_available(syntax: str) -> bool:
    """Whether a transfer syntax is decoded (pydicom calls this).

    Parameters
    ----------
    syntax : str
        Its UID.

    Returns
    -------
    bool
        True of those that `register` names.
    """
    return syntax in DECODER_DEPENDENCIES


def _decode_frame(stream: bytes, runner: DecodeRunner) -> bytearray:
    """A frame as a file of its own, which the library reads."""
    is_jpeg = runner.transfer_syntax == uid.JPEGBaseline8Bit
    if is_jpeg and runner.samples_per_pixel > 1 and not runner.photometric_interpretation.startswith("YBR"):
        raise ValueError("Tessera leaves JPEG of RGB to other plugins, since libjpeg may take it for YBR")
    file = pydicom.Dataset()
    file.file_meta = pydicom.dataset.FileMetaDataset()
    file.file_meta.TransferSyntaxUID, file.preamble = runner.transfer_syntax, bytes(128)
    file.Rows, file.Columns, file.SamplesPerPixel = runner.rows, runner.columns, runner.samples_per_pixel
    file.BitsAllocated, file.BitsStored, file.HighBit = runner.bits_allocated, runner.bits_stored, runner.bits_stored - 1
    file.PhotometricInterpretation = runner.photometric_interpretation
    file.PixelRepresentation, file.PixelData = runner.pixel_representation, encapsulate([stream])
    if runner.samples_per_pixel > 1:
        file.PlanarConfiguration = 0
    written = io.BytesIO()
    file.save_as(written, enforce_file_format=False)
    with tessera.open(written.getvalue()) as reader:
        values = np.ascontiguousarray(reader[0])
    if runner.samples_per_pixel > 1:
        runner.set_option("planar_configuration", 0)
        if is_jpeg or runner.photometric_interpretation in ("YBR_ICT", "YBR_RCT"):
            runner.set_option("photometric_interpretation", "RGB")
    runner.set_option("bits_allocated", values.itemsize * 8)
    return bytearray(values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes())


def register() -> None:
    """Adds the plugin `tessera` to pydicom's decoders, which choose the first that is installed.

    ``pixel_array(path, decoding_plugin="tessera")`` chooses it by name.
    """
    for syntax in _SYNTAXES:
        decoder = get_decoder(syntax)
        if "tessera" not in decoder.available_plugins:
            decoder.add_plugin("tessera", (__name__, "_decode_frame"))
