"""Key pairs of one cluster: one to log in with, one that the nodes show as theirs. Files are readable by their owner only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

if TYPE_CHECKING:
    from pathlib import Path


def write_key_pair(path: Path) -> str:
    """Makes an ed25519 key pair, writes its private half to `path`, and returns its public half as OpenSSH writes it."""
    key = Ed25519PrivateKey.generate()
    write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def write_private(path: Path, content: bytes) -> None:
    """Writes a file that never, not even for a moment, others can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
