"""Key pairs of one cluster: the login key, and the host key of the nodes. Only their owner can read the files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

if TYPE_CHECKING:
    from pathlib import Path


def write_key_pair(path: Path) -> str:
    """Makes an ed25519 key pair and writes its private key to `path`. Returns its public key in OpenSSH's format."""
    key = Ed25519PrivateKey.generate()
    write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def write_private(path: Path, content: bytes) -> None:
    """Writes a file that others cannot read at any moment."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
