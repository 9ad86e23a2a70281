"""The kernel's opcodes, as in `checker/kernel/src/ops.rs`."""

from __future__ import annotations

from typing import Final

READ: Final = 0
WRITE: Final = 1
CAS: Final = 2
CAS_FAIL: Final = 3
ACQUIRE: Final = 4
RELEASE: Final = 5
ENQUEUE: Final = 6
DEQUEUE: Final = 7
DEQUEUE_ANY: Final = 8
DEQUEUE_EMPTY: Final = 9
ADD: Final = 10
REMOVE: Final = 11
CONTAINS: Final = 12
READ_SET: Final = 13
INCREMENT: Final = 14
READ_COUNT: Final = 15
FETCH_ADD: Final = 16
APPEND: Final = 17
PUT: Final = 18
READ_LIST: Final = 19
TXN: Final = 20
CUSTOM: Final = 21
NOOP: Final = 22

OBSERVERS: Final = frozenset({READ, CAS_FAIL, DEQUEUE_EMPTY, CONTAINS, READ_SET, READ_COUNT, READ_LIST, NOOP})
INFINITE: Final = 2**63 - 1
