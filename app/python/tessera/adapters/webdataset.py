"""Arrays of WebDataset: members of a shard whose names end in .tsr."""

from __future__ import annotations

from typing import Any

import numpy as np

import tessera

__all__ = ["decode", "encode"]


def decode(key: str, data: bytes) -> Any:
    """A decoder for ``WebDataset(...).decode(tessera.adapters.webdataset.decode)``.

    Parameters
    ----------
    key : str
        The extension of a member of the shard: ``.image.tsr``.
    data : bytes
        The member.

    Returns
    -------
    ndarray or None
        Frames, rows, columns and, where there are several, components; of an array, its own shape. None of another
        extension, which is left to other decoders.

    Raises
    ------
    TesseraError
        If the member is damaged, or has no image that can be read.
    """
    if key.rpartition(".")[2] != "tsr":
        return None
    with tessera.open(data) as reader:
        return np.asarray(reader)


def encode(sample: dict[str, Any]) -> dict[str, Any]:
    """A sample for TarWriter and ShardWriter: arrays whose keys end in ``tsr`` become bytes.

    Parameters
    ----------
    sample : dict
        As the writer takes it. Values that are bytes already stay.

    Returns
    -------
    dict
        The same sample with bytes, losslessly compressed.
    """
    return {key: tessera.compress(value) if key.rpartition(".")[2] == "tsr" and isinstance(value, np.ndarray) else value
            for key, value in sample.items()}
