"""Serves the clients of librdkafka as a program: a JSON object on a line for each request, and one for each answer.

A request is `{"id": 1, "call": [CALLER, [NAME, KIND, SETTINGS], METHOD, ARGUMENTS]}` or `{"end": [CALLER, [NAME, ...]]}`; see
`objects.Objects`. An answer is `{"id": 1, "ok": RESULT}` or `{"id": 1, "error": TEXT}`. The program ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from .objects import Handle, Objects

if TYPE_CHECKING:
    from concurrent.futures import Future


def main() -> None:
    """Serves until the input ends."""
    objects = Objects()
    writing = threading.Lock()

    def answer(number: int, future: Future[Any]) -> None:
        error = future.exception()
        result = {"ok": future.result()} if error is None else {"error": f"{type(error).__name__}: {error}"}
        with writing:
            sys.stdout.write(json.dumps({"id": number, **result}) + "\n")
            sys.stdout.flush()

    for line in sys.stdin:
        match json.loads(line):
            case {"id": int(number), "call": [caller, handle, method, arguments]}:
                objects.call(caller, Handle(*handle), method, arguments).add_done_callback(partial(answer, number))
            case {"end": [caller, names]}:
                objects.end(caller, names)
    os._exit(0)  # the threads of the library go on
