"""HTTP requests to one node, for clients that must know whether a request was sent."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from clusters.kit.answers import NoAnswer, NotSent

if TYPE_CHECKING:
    from collections.abc import Iterator

    import aiohttp

CONNECT_TIMEOUT_S: Final = 1.0
# How long a connection without a request stays open. The library counts this by the clock of the machine, and closes what is
# older. In a simulation that would depend on the speed of the machine, so it is longer than a run.
KEPT_S: Final = 86_400.0
MAX_ANSWER_BYTES: Final = 64 << 20
LONGER: Final = f"expected an answer of at most {MAX_ANSWER_BYTES >> 20} MiB, found a longer one"


class Http:
    """A connection to one node, which opens with the first request."""

    def __init__(self, url: str) -> None:
        """Connects with the first request.

        Args:
            url: What precedes the path of each request.
        """
        self._url = url
        self._session: aiohttp.ClientSession | None = None

    async def send(self, method: str, path: str, **more: Any) -> tuple[int, bytes]:
        """Sends a request, and returns the status and the body of the answer.

        The library sends a POST once. It may send a GET again after a lost connection, so a GET must not change anything.

        Args:
            method: The method, e.g. `POST`.
            path: The path.
            more: `json`, `data` or `params`, as for `aiohttp.ClientSession.request`.

        Raises:
            NotSent: The node got no request.
            NoAnswer: The node may have got it, and the answer is missing or too long.
        """
        with answering():
            async with await self.open(method, path, **more) as response:
                return response.status, await _bounded(response)

    async def open(self, method: str, path: str, **more: Any) -> aiohttp.ClientResponse:
        """Sends a request as `send` does, and returns the answer before its body has come. The caller reads or closes it.

        Raises:
            aiohttp.ClientError: The connection failed; `answering` says what that means.
            OSError: The same.
        """
        import aiohttp  # noqa: PLC0415 - an extra, which only runs of such systems need

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=1, keepalive_timeout=KEPT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            )
        return await self._session.request(method, self._url + path, allow_redirects=False, **more)

    async def close(self) -> None:
        """Closes the connection."""
        if self._session is not None:
            await self._session.close()


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Says of an error of the connection whether the node may have the request.

    Raises:
        NotSent: The node got no request.
        NoAnswer: The node may have got it.
    """
    import aiohttp  # noqa: PLC0415 - an extra, which only runs of such systems need

    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise NotSent(_words(error)) from error
    except (aiohttp.ClientError, OSError) as error:
        raise NoAnswer(_words(error)) from error


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise NoAnswer(LONGER)
        parts.append(part)
    return b"".join(parts)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
