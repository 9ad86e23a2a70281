"""Requests to the naming service of one Nacos node.

A service has instances, each with an address and metadata. Here it has one: the node's own loopback address, so that a health
check finds the node itself. The metadata hold the value.

Source: Nacos 0.8.0, the classes `ServiceController`, `InstanceController`, `ApiCommands` and `RaftCommands`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from clusters.kit.answers import NoAnswer, Refused
from clusters.kit.http import Http
from clusters.systems.nacos.options import Writes
from clusters.systems.nacos.outcomes import code_of

if TYPE_CHECKING:
    from collections.abc import Sequence

PORT: Final = 8848
HTTP_OK: Final = 200
NOT_FOUND: Final = 404
INSTANCE: Final = {"ip": "127.0.0.1", "port": PORT, "clusterName": "DEFAULT"}
FIELD: Final = "value"
LISTED: Final = 100_000
INSTANCES: Final = "com.alibaba.nacos.naming.iplist.public##"  # and the name of the service
MAX_MESSAGE: Final = 200


class Peer(NamedTuple):
    """A node as a node sees it.

    Attributes:
        address: Its address, without the port.
        role: `leader`, `follower` or `candidate`.
        term: Its term. A leader adds 100 to it with each change of a service.
    """

    address: str
    role: str
    term: int


class Naming:
    """A connection to the naming service of one node; every request raises `NotSent`, `NoAnswer` or `Refused`."""

    def __init__(self, address: str) -> None:
        """Connects with the first request.

        Args:
            address: The address of the node.
        """
        self._http = Http(f"http://{address}:{PORT}/nacos/v1/ns/")

    async def close(self) -> None:
        """Closes the connection."""
        await self._http.close()

    async def create(self, service: str, writes: Writes) -> None:
        """Creates a service without instances."""
        mode = "server" if writes is Writes.FOLLOWERS else "none"
        await self._call("POST", "service", data={"serviceName": service, "healthCheckMode": mode})

    async def write(self, service: str, value: str) -> None:
        """Sets the only instance of a service, which must exist."""
        instances = json.dumps([{**INSTANCE, "weight": 1, "metadata": {FIELD: value}}])
        await self._call("POST", "api/addIP4Dom", data={"dom": service, "json": "true", "ipList": instances})

    async def read(self, service: str) -> str | None:
        """Returns the value of a service, as the node's own state has it; None if it has none."""
        status, text = await self._send("GET", "instance/list", params={"serviceName": service})
        return None if status == NOT_FOUND else value_in(_member(_read(status, text), "hosts"))

    async def peers(self) -> Sequence[Peer]:
        """Returns all nodes as this node sees them."""
        members = _member(await self._call("GET", "raft/state"), "peers")
        try:
            return [
                Peer(str(member["ip"]).rpartition(":")[0], str(member["state"]).lower(), int(member["term"]))
                for member in members
            ]
        except (TypeError, KeyError, ValueError, OverflowError) as error:
            raise NoAnswer(f"expected peers with ip, state and term, found {str(members)[:MAX_MESSAGE]}") from error

    async def services(self) -> Sequence[str]:
        """Returns the names of all services."""
        answer = await self._call("GET", "service/list", params={"pageNo": "1", "pageSize": str(LISTED)})
        return sorted(map(str, _member(answer, "doms")))

    async def stored(self, service: str) -> tuple[int, str | None]:
        """Returns the number of changes of a service's instances, and its value, as the node's Raft has them."""
        answer = await self._call("GET", "raft/get", params={"keys": INSTANCES + service})
        try:
            (stored,) = answer
            return (0, None) if stored is None else (int(stored["timestamp"]), value_in(json.loads(stored["value"])))
        except (TypeError, KeyError, ValueError, OverflowError, RecursionError) as error:
            raise NoAnswer(f"expected a timestamp and instances, found {str(answer)[:MAX_MESSAGE]}") from error

    async def _call(self, method: str, path: str, **more: Any) -> Any:
        return _read(*await self._send(method, path, **more))

    async def _send(self, method: str, path: str, **more: Any) -> tuple[int, str]:
        status, body = await self._http.send(method, path, **more)
        return status, body.decode(errors="replace")


def _read(status: int, text: str) -> Any:
    """Returns the JSON in an answer; None for `ok`.

    Raises:
        Refused: It is an error, with the code of `outcomes.code_of`.
        NoAnswer: It is no JSON.
    """
    if status != HTTP_OK:
        raise Refused(code_of(text), text[:MAX_MESSAGE])
    if text == "ok":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise NoAnswer(f"expected JSON or ok, found {text[:MAX_MESSAGE]!r}") from None


def value_in(instances: Any) -> str | None:
    """Returns the value in the metadata of the only instance; None without an instance.

    Raises:
        NoAnswer: There are several instances, or one has no value, so no client wrote it.
    """
    match instances:
        case []:
            return None
        case [{"metadata": {"value": str(value)}}]:
            return value
    raise NoAnswer(f"expected one instance with a value, found {str(instances)[:MAX_MESSAGE]}")


def _member(answer: Any, name: str) -> Any:
    if isinstance(answer, dict) and isinstance(answer.get(name), list):
        return answer[name]
    raise NoAnswer(f"expected an object with a list {name}, found {str(answer)[:MAX_MESSAGE]}")
