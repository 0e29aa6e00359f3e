"""What came of a file: reports of the library as classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from . import _native
from ._image import Image
from ._image import from_native as image_from_native
from ._roi import Exact, exact_from_native

_library = _native.library


@dataclass(frozen=True)
class WindowLoss:
    """How a window of a DICOM image came through a loss, over the samples whose original lies inside.

    In the units of the file's values, Hounsfield units of a CT. `rmse` and `psnr_db` (20 log10(width / rmse)) are None
    where there are no samples. A window of fewer than 256 samples, or of less than 0.1 % of all, is not judged. `ssim` is
    the mean structural similarity inside, `largest_error` that of a sample inside.
    """

    center: float
    width: float
    samples: int
    rmse: float | None
    psnr_db: float | None
    is_judged: bool
    ssim: float | None
    largest_error: float | None


@dataclass(frozen=True)
class Report:
    """What became of a file (struct tsr_report). None: the number does not apply.

    `way` is "coded" (its samples, its streams or the files in it are modelled) or "stored" (general compression alone).
    `verbatim`: it has no image that can be read, coded or not; `reason` says why. `damage` says what looks damaged in the original; it is
    empty where nothing was noticed. `psnr_db` and `ssim` are those of the values' `range`, `psnr_stored_db` that of all
    that the stored bits could hold. `ratio_limit` is the published limit of pixel_bytes / payload_bytes for a loss in this
    `modality`.

    `windows` are those that most frames name, four at most. `windows_left_out` others are judged in each frame that names
    them; `left_out_psnr_db` is the least of these. `windows_note` says what else there is to know, such as errors that are
    in stored values, of a file with a Modality LUT.

    `kept`: of a lossy file, ranges of stored values that did not change: those that it names, those of `Options`, and its
    background.

    `files`: of an archive, the files in it that are coded as files of their own.
    """

    kind: str
    verbatim: bool
    reason: str
    bytes_in: int
    bytes_out: int
    pixel_bytes: int
    payload_bytes: int
    lossless: bool
    identical: bool
    original_hash: bytes
    image: Image | None
    path: str
    coder: str
    effort: int
    engine: str | None
    fallback: str
    verified_by: str | None
    psnr_db: float | None
    max_error: int | None
    way: str
    damage: str
    range: int | None
    psnr_stored_db: float | None
    windows: tuple[WindowLoss, ...]
    ssim: float | None
    modality: str
    ratio_limit: int | None
    windows_left_out: int
    left_out_psnr_db: float | None
    windows_note: str
    kept: tuple[tuple[int, int], ...]
    files: int
    base_bytes: int
    base_psnr_db: float | None
    base_max_error: int | None
    exact: Exact | None


def _window_from_native(window: _native.tsr_window_loss) -> WindowLoss:
    return WindowLoss(
        center=window.center,
        width=window.width,
        samples=window.samples,
        rmse=window.rmse if window.samples else None,
        psnr_db=window.psnr_db if window.samples else None,
        is_judged=window.is_judged,
        ssim=window.ssim if window.ssim > -1 else None,
        largest_error=window.largest_error if window.samples else None,
    )


def windows_from_native(told: _native.tsr_report | _native.tsr_info) -> tuple[WindowLoss, ...]:
    return tuple(_window_from_native(window) for window in told.window[: told.windows])


def kept_from_native(kept: Any, count: int) -> tuple[tuple[int, int], ...]:
    return tuple((values.lowest, values.highest) for values in kept[:count])


def report_from_native(report: _native.tsr_report) -> Report:
    return Report(
        kind=_library.tsr_kind_name(report.kind).decode(),
        verbatim=not report.has_image,
        reason=report.reason.decode("utf-8", "replace"),
        bytes_in=report.bytes_in,
        bytes_out=report.bytes_out,
        pixel_bytes=report.pixel_bytes,
        payload_bytes=report.payload_bytes,
        lossless=report.promise != _native.PROMISE_LOSSY,
        identical=report.promise == _native.PROMISE_FILE,
        original_hash=bytes(report.original_hash),
        image=image_from_native(report.image) if report.has_image else None,
        path=_library.tsr_path_name(report.coding.path).decode(),
        coder=_library.tsr_coder_name(report.coding.coder).decode(),
        effort=report.coding.effort,
        engine=report.engine.decode() if report.engine else None,
        fallback=report.fallback.decode("utf-8", "replace"),
        verified_by=report.verified_by.decode() if report.verified_by else None,
        psnr_db=report.psnr_db if report.psnr_db >= 0 else None,
        max_error=report.max_error if report.max_error >= 0 else None,
        way=_library.tsr_way_name(report.way).decode(),
        damage=report.damage.decode("utf-8", "replace"),
        range=report.range or None,
        psnr_stored_db=report.psnr_stored_db if report.psnr_stored_db >= 0 else None,
        windows=windows_from_native(report),
        ssim=report.ssim if report.ssim > -1 else None,
        modality=report.modality.decode("utf-8", "replace"),
        ratio_limit=report.ratio_limit or None,
        windows_left_out=report.windows_left_out,
        left_out_psnr_db=None if math.isnan(report.left_out_psnr_db) else report.left_out_psnr_db,
        windows_note=report.windows_note.decode("utf-8", "replace"),
        kept=kept_from_native(report.kept, report.kept_count),
        files=report.files,
        base_bytes=report.base_bytes,
        base_psnr_db=report.base_psnr_db if report.base_psnr_db >= 0 else None,
        base_max_error=report.base_max_error if report.base_max_error >= 0 else None,
        exact=exact_from_native(report.exact),
    )
