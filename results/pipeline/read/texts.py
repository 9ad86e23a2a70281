"""Columns of texts for the kernel, and which of them are canonical JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from checker._kernel import evident_texts

if TYPE_CHECKING:
    import pyarrow as pa

    from checker.formats.columns import Int64s


def kernel_texts(texts: pa.Array) -> tuple[Any, Any, Any]:
    """Returns texts as the kernel takes them (`evident_texts`)."""
    _, ends, text = texts.buffers()
    valid = texts.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
    if ends is None:
        return np.zeros(1, np.int32), np.zeros(0, np.uint8), valid
    bounds = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bounds, np.frombuffer(text or b"", np.uint8), valid


def odd_texts(texts: pa.Array) -> Int64s:
    """Returns the places of the texts that may be no canonical JSON."""
    return np.flatnonzero(np.frombuffer(evident_texts(kernel_texts(texts)), np.uint8) == 0)
