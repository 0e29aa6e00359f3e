"""The reader of napari, as napari.yaml declares it. napari is not imported."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import tessera
import tessera.dask

__all__ = ["get_reader"]

Layer = tuple[Any, dict[str, Any], str]


def get_reader(path: str | list[str]) -> Callable[[str | list[str]], list[Layer]] | None:
    """What reads paths that end in .tsr (napari calls this).

    Parameters
    ----------
    path : str or list of str
        What is to be opened.

    Returns
    -------
    callable or None
        It takes the same paths, and returns a layer for each: a Dask array of frames, rows, columns and, of colours,
        components, which decodes a frame when it is shown; options of the layer; ``"image"``. None if another reader
        has to read them.
    """
    paths = [path] if isinstance(path, str) else path
    return _read if all(one.endswith(".tsr") for one in paths) else None


def _read(path: str | list[str]) -> list[Layer]:
    return [_read_one(one) for one in ([path] if isinstance(path, str) else path)]


def _read_one(path: str) -> Layer:
    with tessera.open(path) as reader:
        first = next((member for member in reader.members if not member.info.verbatim), reader.members[0])
        components, metadata = first.image.components, {"kind": first.info.kind, "bits_stored": first.image.bits_stored}
    array = tessera.dask.from_tsr(path)
    layers = {"name": os.path.basename(path).removesuffix(".tsr"), "rgb": components in (3, 4), "metadata": metadata}
    return array, layers, "image"
