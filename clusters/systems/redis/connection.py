"""A connection to one Redis server or sentinel: commands, answers, and what is known of a command without an answer.

It uses a connection of the library redis-py, and not its client: the client may send a command again after a lost connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clusters.kit.answers import NoAnswer, NotSent, Refused

if TYPE_CHECKING:
    from redis.asyncio.connection import Connection as LibraryConnection

PORT: Final = 6379
SENTINEL_PORT: Final = 26379
CONNECT_TIMEOUT_S: Final = 1.0
MAX_SHOWN: Final = 200  # characters of an error


class Connection:
    """A connection that opens with the first command, and again after it broke."""

    def __init__(self, address: str, port: int = PORT) -> None:
        """Connects with the first command.

        Args:
            address: The address of the node.
            port: The TCP port.
        """
        self._address = address
        self._port = port
        self._library: LibraryConnection | None = None

    async def call(self, *words: str | int) -> Any:
        """Sends a command once, and returns its answer: a text, a number, None, or a list of these.

        Args:
            words: The command and its arguments.

        Raises:
            NotSent: The server got no command.
            NoAnswer: The server may have got it, and the answer is missing or not readable.
            Refused: The server answered with an error.
        """
        from redis.exceptions import RedisError, ResponseError  # noqa: PLC0415 - an extra, which only runs of Redis need

        library = await self._open()
        complete = False
        try:
            await library.send_command(*words)
            answer = await library.read_response()
            complete = True
        except ResponseError as error:
            complete = True
            text = _as_sent(error)
            raise Refused(text.partition(" ")[0], text[:MAX_SHOWN]) from error
        except (RedisError, OSError, ValueError) as error:
            raise NoAnswer(_words(error)) from error
        finally:
            if not complete:  # also if the call was cancelled: the next answer would be that of this command
                await self.close()
        return answer

    async def close(self) -> None:
        """Closes the connection."""
        library, self._library = self._library, None
        if library is not None:
            await library.disconnect(nowait=True)

    async def _open(self) -> LibraryConnection:
        from redis.asyncio.connection import Connection as Library  # noqa: PLC0415
        from redis.asyncio.retry import Retry  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.exceptions import RedisError  # noqa: PLC0415

        if self._library is None:
            made = Library(
                host=self._address,
                port=self._port,
                socket_connect_timeout=CONNECT_TIMEOUT_S,
                socket_timeout=None,
                retry=Retry(NoBackoff(), 0),
                protocol=2,  # no greeting before the first command
                driver_info=None,  # nothing about the library
                decode_responses=True,
            )
            try:
                await made.connect()  # type: ignore[no-untyped-call]
            except (RedisError, OSError) as error:
                raise NotSent(_words(error)) from error
            self._library = made
        return self._library


def _as_sent(error: Exception) -> str:
    """Returns an error as the server sent it. The library cuts off the codes that it has classes for."""
    from redis.exceptions import MasterDownError, ReadOnlyError  # noqa: PLC0415

    codes = {ReadOnlyError: "READONLY", MasterDownError: "MASTERDOWN"}
    code = next((code for kind, code in codes.items() if isinstance(error, kind)), None)
    return str(error) if code is None else f"{code} {error}"


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
