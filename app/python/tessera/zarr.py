"""The codec `tessera` of Zarr format 3, which Zarr finds by its entry point. io/ZARR.md says what its bytes are."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from zarr.abc.codec import ArrayBytesCodec

from . import _chunks

if TYPE_CHECKING:
    from typing import Self

    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer
    from zarr.core.common import JSON

__all__ = ["TesseraCodec"]


@dataclass(frozen=True)
class TesseraCodec(ArrayBytesCodec):
    """Chunks of rows and columns, of any number of axes before them and of 8 or 16 bits, as frame payloads.

    Parameters
    ----------
    effort : int
        1 (fastest) to 9 (smallest).
    max_error : int
        0: lossless. Else no value differs by more, at most 32767.
    components : int
        1, or the length of the last axis, 2 to 4, if that is colours or the like.
    depth : int
        1, or 2 to 4: so many adjacent planes are predicted from each other. Chunks are smaller where planes are alike,
        and decoding takes longer. The number of a chunk's planes must be a multiple of it.

    Examples
    --------
    >>> import numpy, zarr
    >>> from tessera.zarr import TesseraCodec
    >>> volume = numpy.arange(16 * 64 * 64, dtype="int16").reshape(16, 64, 64)
    >>> stored = zarr.create_array(
    ...     {}, data=volume, chunks=(8, 64, 64), serializer=TesseraCodec(effort=5), compressors=None)
    >>> bool((stored[3, 10:20] == volume[3, 10:20]).all())
    True
    """

    is_fixed_size = False

    effort: int = 5
    max_error: int = 0
    components: int = 1
    depth: int = 1
    _configuration: _chunks.Configuration = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        configuration = _chunks.Configuration(self.effort, self.max_error, self.components, self.depth)
        object.__setattr__(self, "_configuration", configuration)

    @classmethod
    def from_dict(cls, data: dict[str, JSON]) -> Self:
        """The codec of an array's metadata (zarr calls this).

        Parameters
        ----------
        data : dict
            The codec's object in zarr.json (io/ZARR.md).

        Returns
        -------
        TesseraCodec
            The codec.

        Raises
        ------
        ValueError
            If it is another codec's object, or a parameter is missing, unknown or out of its range.
        """
        if data.get("name") != "tessera":
            raise ValueError(f"a codec of the name {data.get('name')!r} is not the tessera codec")
        unknown = [name for name in data if name not in ("name", "configuration", "must_understand")]
        if unknown:
            raise ValueError(f"the tessera codec does not know {', '.join(unknown)}")
        given = data.get("configuration", {})
        if not isinstance(given, dict):
            raise ValueError(f"the tessera codec's configuration is {given!r}, not an object")
        made = _chunks.Configuration.from_dict(given)
        return cls(made.effort, made.max_error, made.components, made.depth)

    def to_dict(self) -> dict[str, JSON]:
        """The codec's object in zarr.json.

        Returns
        -------
        dict
            As io/ZARR.md specifies it.
        """
        return {"name": "tessera", "configuration": cast("JSON", self._configuration.to_dict())}

    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        """Refuses arrays of a type that it cannot encode (zarr calls this).

        Parameters
        ----------
        shape : tuple of int
            Not checked: an earlier codec may give the chunk another shape, which encoding checks.
        dtype : zarr data type
            The array's.
        chunk_grid : zarr chunk grid
            Not checked.

        Raises
        ------
        TypeError
            If the type is no integer of 8 or 16 bits.
        """
        _chunks.check_type(dtype.to_native_dtype())

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        data = np.ascontiguousarray(chunk_bytes.as_numpy_array()).view(np.uint8)
        chunk = _chunks.decode(data, self._configuration, chunk_spec.shape, chunk_spec.dtype.to_native_dtype())
        return chunk_spec.prototype.nd_buffer.from_numpy_array(chunk)

    def _encode_sync(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        payload = _chunks.encode(chunk_array.as_numpy_array(), self._configuration)
        return chunk_spec.prototype.buffer.from_bytes(payload)

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Raises, since the size of a chunk is known only once it is encoded.

        Parameters
        ----------
        input_byte_length : int
            Not used.
        chunk_spec : zarr.core.array_spec.ArraySpec
            Not used.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError("chunks of the tessera codec have no fixed size")
