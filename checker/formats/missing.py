"""What an event of a history may lack, in one vocabulary for all formats.

Each reader states it in a table, and reads by this table. `tools/tables.py` writes the tables of all readers into
docs/reference/formats.md, and a test builds a file for each cell.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE: Final = "type"
FUNCTION: Final = "function"
PROCESS: Final = "process"
VALUE: Final = "value"
INDEX: Final = "index"
TIME: Final = "time"
KEY: Final = "key"
INVOKE: Final = "invoke"
COMPLETION: Final = "completion"
THINGS: Final = (TYPE, FUNCTION, PROCESS, VALUE, INDEX, TIME, KEY, INVOKE, COMPLETION)


class May(enum.StrEnum):
    """Whether something may be missing.

    Attributes:
        NO: Never.
        YES: In any event.
        OF_ALL: In all events of clients, or in none.
        OF_TRANSACTIONS: In any event of a history of transactions.
        ALWAYS: It always is, because the format has no place for it.
    """

    NO = "no"
    YES = "yes"
    OF_ALL = "of all"
    OF_TRANSACTIONS = "of transactions"
    ALWAYS = "always"


MayLack = "Mapping[str, May]"
# The rules of Jepsen's events, which all formats of other tools share.
OF_EVENTS: Final[Mapping[str, May]] = {
    TYPE: May.NO,
    FUNCTION: May.OF_TRANSACTIONS,
    PROCESS: May.OF_TRANSACTIONS,
    VALUE: May.YES,
    INDEX: May.OF_ALL,
    TIME: May.OF_ALL,
    KEY: May.YES,
    INVOKE: May.OF_TRANSACTIONS,
    COMPLETION: May.YES,
}
