"""What headers say: elements of DICOM, and what a file is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from . import _native
from ._media import take_bytes
from ._reports import WindowLoss, kept_from_native, windows_from_native
from ._roi import Exact, exact_from_native

_library = _native.library


@dataclass(frozen=True)
class Element:
    """An element of a header (struct tsr_element). value is None of sequences and items."""

    tag: int
    vr: str
    depth: int
    value: bytes | None


class Header(Sequence[Element]):
    """The elements of an original's header, and its bytes before the pixels.

    Attributes
    ----------
    kind : str
        "dicom", "png", "pnm", "nifti", "y4m" or "other".
    big_endian : bool
        Of DICOM: the order of numbers in values.
    bytes : bytes
    """

    def __init__(self, native: _native.tsr_metadata) -> None:
        self.kind: str = _library.tsr_kind_name(native.kind).decode()
        self.big_endian: bool = native.big_endian
        self.bytes: bytes = take_bytes(native.bytes, native.byte_count)
        self._elements = [
            Element(
                element.tag,
                element.vr.decode("latin-1"),
                element.depth,
                None if element.value is None else take_bytes(element.value, element.count),
            )
            for element in (native.elements[i] for i in range(native.element_count))
        ]

    def __len__(self) -> int:
        return len(self._elements)

    @overload
    def __getitem__(self, index: int) -> Element: ...
    @overload
    def __getitem__(self, index: slice) -> list[Element]: ...
    def __getitem__(self, index: int | slice) -> Element | list[Element]:
        return self._elements[index]

    def find(self, tag: int) -> Element | None:
        """The first element of depth 0 with a tag.

        Parameters
        ----------
        tag : int
            The group in the high 16 bits, the element in the low ones.

        Returns
        -------
        Element or None
            None where there is none.
        """
        return next((element for element in self._elements if element.tag == tag and element.depth == 0), None)


@dataclass(frozen=True)
class Info:
    """What a member is (struct tsr_info), from headers alone. None: the number does not apply.

    `way` is "coded" (its samples, its streams or the files in it are modelled), "stored" (general compression alone), or
    "" for an original that was opened. `verbatim`: it has no image that can be read; `reason` says why.
    `damage` is that of the .tsr. `original_damage` says what looked damaged in the original when it was compressed; it
    is empty where nothing was noticed. `kept`: of a lossy file, ranges of stored values that did not change.
    `files`: those in an archive or a gzip file that are coded as files of their own; `Member.images` has their images.
    `units`: frames whose streams stand in the file: lossy ones, or such that could not be made again from samples.
    `base_bytes`: those of the base of a file that was compressed with `Options.lossless_rest` or `Options.roi`, else 0.
    `encrypted`: the .tsr is, and was opened with its key.
    `exact`: what of a lossy file comes back as it was (`Reader.exact`); None: nothing in particular. `first_tiles`: of the
    `tiles` of each frame that come first (`Options.first`); both 0: none do.
    `linked`: frames may be predicted from the frame before (`Options.independent`).
    """

    kind: str
    verbatim: bool
    reason: str
    restore: str
    identical: bool
    path: str
    coder: str
    lossy: bool
    effort: int
    file_bytes: int
    original_bytes: int
    payload_bytes: int
    original_hash: bytes
    max_error: int | None
    psnr_db: float | None
    damage: str | None
    way: str
    original_damage: str
    range: int | None
    psnr_stored_db: float | None
    windows: tuple[WindowLoss, ...]
    kept: tuple[tuple[int, int], ...]
    files: int
    units: int
    base_bytes: int
    base_psnr_db: float | None
    base_max_error: int | None
    exact: Exact | None
    tiles: int
    first_tiles: int
    encrypted: bool
    linked: bool


def info_from_native(info: _native.tsr_info) -> Info:
    return Info(
        kind=_library.tsr_kind_name(info.kind).decode(),
        verbatim=not info.has_image and info.members == 0,
        reason=info.reason.decode("utf-8", "replace"),
        restore=_library.tsr_returns_name(info.returns).decode(),
        identical=info.promise == _native.PROMISE_FILE,
        path=_library.tsr_path_name(info.coding.path).decode(),
        coder=_library.tsr_coder_name(info.coding.coder).decode(),
        lossy=info.coding.lossy,
        effort=info.coding.effort,
        file_bytes=info.file_bytes,
        original_bytes=info.original_bytes,
        payload_bytes=info.payload_bytes,
        original_hash=bytes(info.original_hash),
        max_error=info.max_error if info.max_error >= 0 else None,
        psnr_db=info.psnr_db if info.psnr_db >= 0 else None,
        damage=info.damage.decode("utf-8", "replace") if info.damage else None,
        way=_library.tsr_way_name(info.way).decode(),
        original_damage=info.original_damage.decode("utf-8", "replace"),
        range=info.range or None,
        psnr_stored_db=info.psnr_stored_db if info.psnr_stored_db >= 0 else None,
        windows=windows_from_native(info),
        kept=kept_from_native(info.kept, info.kept_count),
        files=info.files,
        units=info.units,
        base_bytes=info.base_bytes,
        base_psnr_db=info.base_psnr_db if info.base_psnr_db >= 0 else None,
        base_max_error=info.base_max_error if info.base_max_error >= 0 else None,
        exact=exact_from_native(info.exact),
        tiles=info.tiles,
        first_tiles=info.first_tiles,
        encrypted=info.encrypted,
        linked=info.linked,
    )
