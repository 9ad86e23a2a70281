"""The kinds of messages between members of a DLedger group, for the faults that wait for a rare message."""

from __future__ import annotations

import re
from typing import Final

# The headers of remoting are JSON. Source: RocketMQ's RemotingCommand, and DLedgerRequestCode and PushEntryRequest of DLedger
# 0.3.1.2 and 0.4.0.
CODE: Final = re.compile(rb'"code":(\d{1,9})')
ANSWERS: Final = re.compile(rb'"flag":[13],')
PUSH: Final = re.compile(rb'"type":"([A-Z_]{1,30})"')
REQUESTS: Final = {
    51001: "Vote",
    51002: "Heartbeat",
    51004: "Push",
    51005: "LeadershipTransfer",
    51006: "InstallSnapshot",
}


class Messages:
    """One object for each kind of message. The name of its type is the kind; see `clusters.sim.rarity`."""

    def __init__(self) -> None:
        self._found: dict[str, object] = {}

    def of(self, data: bytes) -> object:
        """Returns a request by its code and, for a push, by its type; all answers are one kind."""
        code = CODE.search(data)
        answers = ANSWERS.search(data) is not None
        name = "Answer" if code is None or answers else REQUESTS.get(int(code[1]), "Request")
        if name == "Push" and (kind := PUSH.search(data)) is not None:
            name += kind[1].decode().title()
        message_type = self._found.get(name)
        if message_type is None:
            message_type = self._found[name] = type(name, (), {})()
        return message_type
