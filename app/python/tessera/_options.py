"""How files are compressed: options by name."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from . import _native
from ._errors import check
from ._media import Source
from ._numbers import integer, parts
from ._roi import Roi, roi_to_native

_library = _native.library


PathWord = Literal["predict", "transform"]
QualityWord = Literal["diagnostic", "visually-lossless", "web"]
TuneWord = Literal["by-loss", "psnr", "ssim"]
CoderWord = Literal["by-effort", "huffman", "cavlc", "rans"]
VerifyWord = Literal["cpu", "none", "engine"]


class OptionFields(TypedDict, total=False):
    """The fields of `Options` but effort, as functions take them by name."""

    max_error: int | None
    psnr: float | None
    ssim: float | None
    ratio: float | None
    size: int | None
    qp: float | None
    quality: QualityWord | None
    tune: TuneWord
    path: PathWord
    coder: CoderWord
    verify: VerifyWord
    allow_lossy: bool
    samples_only: bool
    range: int
    least_psnr: float | None
    within_ratio: bool
    lossless_rest: bool
    independent: bool
    roi: Roi | None
    first: Roi | None
    tile_side: int
    keep: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Options:
    """How to compress.

    Parameters
    ----------
    effort : int
        1 (fastest) to 9 (smallest).
    max_error : int, optional
        Lossy: no sample differs by more.
    psnr : float, optional
        Lossy: the least PSNR in dB, by the range of the values.
    ssim : float, optional
        Lossy: the least SSIM over all samples, 0.0001 to 0.9999.
    ratio : float, optional
        Lossy: the least ratio of the input's bytes to the output's.
    size : int, optional
        Lossy: the most bytes of the output.
    qp : float, optional
        Lossy: the quantiser, in steps of 1/8, by the range of the values: 20 does the same at any depth.
    quality : {"diagnostic", "visually-lossless", "web"}, optional
        Lossy: a PSNR of at least 45, 40 or 35 dB, and an SSIM of at least 0.995, 0.99 or 0.97, in each judged window
        (`WindowLoss`) and over all. The first two also bound the largest error.
    tune : {"by-loss", "psnr", "ssim"}
        With qp, psnr, ssim, ratio, size or quality: what bytes are spent on, a small squared error or what is seen. By
        loss: ssim with ssim, what makes the smaller file with the quality web, psnr with all else.
    path : {"predict", "transform"}
        Of a lossless coding.
    coder : {"by-effort", "huffman", "cavlc", "rans"}
    verify : {"cpu", "none", "engine"}
        What decodes the output to prove it.
    allow_lossy : bool
        Loss may be taken for images that are never coded with loss by accident.
    samples_only : bool
        The samples are enough: of PNG, which is much faster, and of DICOM whose streams cannot come back byte for byte.
    range : int
        Of the values, by which psnr and qp count: 255 to 16777215. 0: the image's own. Only of samples of more than 8 bits
        in one component.
    least_psnr : float, optional
        Nothing is kept, and TesseraError raised, where a lossy file would have less dB in a judged window or over all.
    within_ratio : bool
        The same where a lossy file would exceed the published ratio of its modality (`Report.ratio_limit`).
    lossless_rest : bool
        Lossy: what this gives is the base of a .tsr whose original comes back byte for byte. ``open(data, level="base")``
        reads the base alone. An image that is never coded with loss has no base.
    independent : bool
        Each frame is read alone. Else, without loss at effort 9, a frame may be predicted from the frame before
        (`Info.linked`): reading one then decodes up to 8.
    roi : (column, row, columns, rows), array of rows and columns, "auto", or a sequence of these, optional
        Lossy, but not with ratio or size: these samples come back as they were, in all frames, with those around them
        that `Reader.exact` tells. Of an array those count that are not 0; auto is the body. What this gives without it
        is the base, as with lossless_rest.
    first : as roi, optional
        The tiles with these samples stand before all others, those of all frames one after the other: who reads the file
        at the end of a slow line has them first. Nothing changes where frames have one tile, or all tiles have such
        samples.
    tile_side : int
        64, 128, 192 or 256: tiles of at most so many columns and its square of samples, of which fewer are lost with
        damage. 0: 65536 samples; with first 256.
    keep : sequence of (lowest, highest)
        Lossy: stored values that do not change, as those of padding, and that no other sample gets. At most four ranges,
        with those that the file names; of images of one component.

    Notes
    -----
    At most one of max_error, psnr, ssim, ratio, size, qp and quality is given. Without any of them coding is lossless.
    """

    effort: int = 5
    max_error: int | None = None
    psnr: float | None = None
    ssim: float | None = None
    ratio: float | None = None
    size: int | None = None
    qp: float | None = None
    quality: QualityWord | None = None
    tune: TuneWord = "by-loss"
    path: PathWord = "predict"
    coder: CoderWord = "by-effort"
    verify: VerifyWord = "cpu"
    allow_lossy: bool = False
    samples_only: bool = False
    range: int = 0
    least_psnr: float | None = None
    within_ratio: bool = False
    lossless_rest: bool = False
    independent: bool = False
    roi: Roi | None = None
    first: Roi | None = None
    tile_side: int = 0
    keep: Sequence[tuple[int, int]] = ()

    def _take_loss(self, options: _native.tsr_compress_options) -> None:
        asked = [self.max_error, self.psnr, self.ssim, self.ratio, self.size, self.qp, self.quality]
        if sum(value is not None for value in asked) > 1:
            raise ValueError("at most one of max_error, psnr, ssim, ratio, size, qp and quality can be given")
        if self.max_error is not None:
            options.loss = _native.LOSS_MAX_ERROR
            options.max_error = integer("max_error", self.max_error, 1, 32767)
        if self.psnr is not None:
            options.loss = _native.LOSS_PSNR
            options.psnr_hundredths = parts("psnr", self.psnr, 100, 1, 200)
        if self.ssim is not None:
            options.loss = _native.LOSS_SSIM
            options.ssim_ten_thousandths = parts("ssim", self.ssim, 10000, 0.0001, 0.9999)
        if self.ratio is not None:
            options.loss = _native.LOSS_RATIO
            options.ratio_thousandths = parts("ratio", self.ratio, 1000, 0.001, 1e15)
        if self.size is not None:
            options.loss = _native.LOSS_BYTES
            options.byte_limit = integer("size", self.size, 1, 2**63 - 1)
        if self.qp is not None:
            options.loss = _native.LOSS_QP
            options.qp_eighths = parts("qp", self.qp, 8, -48, 51)
        options.tune = _number(_native.TUNES, self.tune)
        if self.quality is not None:
            options.loss = _native.LOSS_QUALITY
            options.quality = _number(_native.QUALITIES, self.quality) + 1

    def to_native(self) -> _native.tsr_compress_options:
        """As the C library's struct.

        Returns
        -------
        tsr_compress_options
            Options that the library has accepted.

        Raises
        ------
        ValueError
            For a value that no option takes.
        """
        options = _native.sized(_native.tsr_compress_options)
        options.effort = integer("effort", self.effort, 1, 9)
        options.path = _number(_native.PATHS, self.path)
        options.coder = _number(_native.CODERS, self.coder)
        options.verify = _number(_native.VERIFY, self.verify)
        self._take_loss(options)
        options.allow_lossy = self.allow_lossy
        options.samples_only = self.samples_only
        options.range = integer("range", self.range, 0, 2**24 - 1)
        options.within_ratio = self.within_ratio
        options.lossless_rest = self.lossless_rest
        options.independent = self.independent
        if self.roi is not None:
            roi = roi_to_native(self.roi)
            options.roi = ctypes.pointer(roi)
            options.kept_alive = roi
        if self.first is not None:
            first = roi_to_native(self.first, "first")
            options.first = ctypes.pointer(first)
            options.kept_first = first
        options.tile_side = integer("tile_side", self.tile_side, 0, 256)
        options.least_db = parts("least_psnr", self.least_psnr, 100, 1, 200) if self.least_psnr is not None else 0
        error = _native.tsr_error()
        check(_library.tsr_check_options(ctypes.byref(options), ctypes.byref(error)), error)
        return options


def keep_values(source: Source, keep: Sequence[tuple[int, int]]) -> None:
    if len(keep) > len(source.native.kept):
        raise ValueError(f"keep has {len(keep)} ranges of values, of which at most {len(source.native.kept)} can be kept")
    source.native.kept_count = len(keep)
    for values, (lowest, highest) in zip(source.native.kept, keep):
        values.lowest = integer("keep", lowest, -32768, 65535)
        values.highest = integer("keep", highest, values.lowest, 65535)


def _number(words: tuple[str, ...], word: str) -> int:
    if word not in words:
        raise ValueError(f"{word!r} is not one of {', '.join(words)}")
    return words.index(word)
