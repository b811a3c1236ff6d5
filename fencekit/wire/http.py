"""Streamable HTTP: one POST for each frame, each on a connection of its own.

Nothing is ever sent twice here: no transport retries, no redirects followed, no keep-alive whose
staleness would look like a lost answer. Failures say whether the request can have run: what httpx2
reports before a connection stands (ConnectError, ConnectTimeout, PoolTimeout) is NeverLeft, what
it reports later is Unanswered. In the handshake era a response stream that breaks after an event
id is *resumed* with GET, which asks for the answer again and not for the action (MCP 2025-11-25,
"Resumability and Redelivery").
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencekit.wire import protocol
from fencekit.wire.errors import HttpRefused, NeverLeft, TimedOut, Unanswered, WireError
from fencekit.wire.frames import Frame, IdKey, Kind, parse
from fencekit.wire.lines import Lines

if TYPE_CHECKING:
    import httpx2

RESUME_ATTEMPTS = 2
MAX_BODY = 256 * 1024 * 1024  # bytes of one answer or event; a hostile peer must not fill memory
_ANSWERS = (Kind.RESPONSE, Kind.ERROR)


def secret_headers(
    headers: Mapping[str, str], *, bearer_env: str | None = None, bearer_file: Path | None = None
) -> dict[str, str]:
    """Return request headers with the bearer token read from the environment or from a file.

    `headers` values of the form `$NAME` are read from the environment and `@PATH` from a file, so
    that no secret needs to stand on a command line. Raises ValueError naming what is missing.
    """
    made = {name: _secret(value) for name, value in headers.items()}
    if bearer_env is not None:
        made["Authorization"] = f"Bearer {_secret('$' + bearer_env)}"
    if bearer_file is not None:
        made["Authorization"] = f"Bearer {_secret('@' + str(bearer_file))}"
    return made


def _secret(value: str) -> str:
    if value.startswith("$"):
        if not (found := os.environ.get(value[1:])):
            raise ValueError(f"the environment variable {value[1:]} is not set")
        return found
    if value.startswith("@"):
        try:
            return Path(value[1:]).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ValueError(f"{value[1:]} could not be read: {error.strerror}") from error
    return value


class Endpoint:
    """One Streamable HTTP endpoint, and the session on it if the server gives one.

    `timeout` (seconds) bounds connecting and every silence while reading; callers keep their own
    clock for the whole call. Threads may share an endpoint.
    """

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> None:
        import httpx2

        self.url = url
        self.session_id: str | None = None
        self.protocol_version: str | None = None
        self._client = httpx2.Client(
            headers=dict(headers or {}),
            timeout=httpx2.Timeout(timeout),
            follow_redirects=False,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
            transport=None,
        )
        self._open: set[httpx2.Response] = set()
        self._lines = Lines()
        self._lock = threading.Lock()

    def _headers(self, frame: Frame, extra: Mapping[str, str] | None) -> dict[str, str]:
        headers = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
        }
        if self.session_id:
            headers[protocol.HEADER_SESSION] = self.session_id
        if self.protocol_version:
            headers[protocol.HEADER_PROTOCOL_VERSION] = self.protocol_version
        if protocol.is_stateless(self.protocol_version) and frame.method:
            headers[protocol.HEADER_METHOD] = frame.method
            bearing = {**protocol.NAME_BEARING, **protocol.TASK_BEARING}
            name = frame.params.get(bearing.get(frame.method, ""))
            if isinstance(name, str):
                headers[protocol.HEADER_NAME] = protocol.encode_header_value(name)
        return {**headers, **(extra or {})}

    def post(
        self,
        frame: Frame,
        *,
        extra: Mapping[str, str] | None = None,
        on_sent: Callable[[], None] | None = None,
        on_refused: Callable[[HttpRefused], None] | None = None,
    ) -> Iterator[Frame]:
        """POST one frame and yield every frame of the answer; a request's own answer comes last.

        `extra` headers override the standard ones. `on_sent` is called when the last byte of the
        request has left, `on_refused` before an error answer that came with a status of failure.
        Raises NeverLeft, Unanswered or HttpRefused; a request whose stream ends
        without an answer raises Unanswered.
        """

        def trace(name: str, info: Mapping[str, Any]) -> None:
            self._lines.traced(frame.key, name, info)
            if name == "http11.send_request_body.complete" and on_sent is not None:
                on_sent()

        with (
            self._translated(),
            self._lines.held(frame.key),
            self._client.stream(
                "POST",
                self.url,
                content=frame.raw,
                headers=self._headers(frame, extra),
                extensions={"trace": trace},
            ) as response,
            self._tracked(response),
        ):
            if response.status_code >= 300:
                yield from self._refusal(response, frame, on_refused)
            else:
                yield from self._read(response, frame)

    def _read(self, response: httpx2.Response, frame: Frame) -> Iterator[Frame]:
        kind = _content_type(response)
        if frame.method == "initialize":
            self.session_id = response.headers.get(protocol.HEADER_SESSION) or self.session_id
        if frame.kind is not Kind.REQUEST:
            return
        if kind == "application/json":
            yield from self._body(response, frame)
        elif kind == "text/event-stream":
            yield from self._stream(response, frame)
        else:
            status = response.status_code
            raise Unanswered(f"{self.url} answered {status} with {kind or 'no content type'}")

    def _body(self, response: httpx2.Response, frame: Frame) -> Iterator[Frame]:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > MAX_BODY:
                raise Unanswered(f"{self.url} sent more than {MAX_BODY} bytes in one answer")
        frames = parse(bytes(body))
        yield from frames
        if not any(_answers(got, frame) for got in frames):
            raise Unanswered(f"{self.url} answered, but not to this request")

    def _refusal(
        self,
        response: httpx2.Response,
        frame: Frame,
        on_refused: Callable[[HttpRefused], None] | None,
    ) -> Iterator[Frame]:
        refused = self._refused(response)
        if _content_type(response) == "application/json" and frame.kind is Kind.REQUEST:
            got = parse(response.read())
            # A request refused before its id was read is answered with the id null.
            if len(got) == 1 and got[0].kind is Kind.ERROR and got[0].id in (None, frame.id):
                if on_refused is not None:
                    on_refused(refused)
                yield got[0]
                return
        raise refused

    def _refused(self, response: httpx2.Response) -> HttpRefused:
        status = response.status_code
        hint = ""
        if status in (401, 403):
            hint = "; give a token with --bearer-env or --header"
        elif 300 <= status < 400:
            hint = f"; it redirects to {response.headers.get('location', '?')}: use that address"
        return HttpRefused(
            status,
            f"{self.url} answered HTTP {status}{hint}",
            retry_after=response.headers.get("retry-after"),
            challenged="www-authenticate" in response.headers,
        )

    def _stream(self, response: httpx2.Response, frame: Frame) -> Iterator[Frame]:
        last_id = ""
        resumable = not protocol.is_stateless(self.protocol_version)
        with contextlib.ExitStack() as opened:
            for attempt in range(RESUME_ATTEMPTS + 1):
                try:
                    for event_id, got in _events(response):
                        last_id = event_id or last_id
                        for one in got:
                            yield one
                            if _answers(one, frame):
                                return
                except Exception as error:
                    if not (resumable and last_id and attempt < RESUME_ATTEMPTS):
                        raise failure(error, self.url) from error
                if not (resumable and last_id) or attempt == RESUME_ATTEMPTS:
                    break
                response = opened.enter_context(self._get(last_id))
                opened.enter_context(self._tracked(response))
                if response.status_code != 200:
                    break
        raise Unanswered(f"{self.url} ended the stream without an answer")

    @contextlib.contextmanager
    def _get(self, last_id: str | None) -> Iterator[httpx2.Response]:
        headers = {"accept": "text/event-stream"}
        if self.session_id:
            headers[protocol.HEADER_SESSION] = self.session_id
        if self.protocol_version:
            headers[protocol.HEADER_PROTOCOL_VERSION] = self.protocol_version
        if last_id:
            headers[protocol.HEADER_LAST_EVENT_ID] = last_id
        with self._client.stream("GET", self.url, headers=headers) as response:
            yield response

    def listen(self, last_id: str | None = None) -> Iterator[tuple[str, Frame]]:
        """Yield (event id, frame) from the server's own GET stream until it ends.

        Ends at once where the server offers none (405). Raises NeverLeft or Unanswered.
        """
        with self._translated(), self._get(last_id) as response, self._tracked(response):
            if response.status_code != 200:
                return
            for event_id, frames in _events(response):
                for frame in frames:
                    yield event_id, frame

    @contextlib.contextmanager
    def _tracked(self, response: httpx2.Response) -> Iterator[None]:
        with self._lock:
            self._open.add(response)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(response)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (WireError, GeneratorExit):
            raise
        except Exception as error:
            raise failure(error, self.url) from error

    def cut(self, key: IdKey) -> bool:
        """End the connection of a request that waits for its answer; says whether one does.

        Its `post` then raises NeverLeft or Unanswered.
        """
        return self._lines.cut(key)

    def end_session(self) -> None:
        """Tell the server that its session is over (DELETE); its answer does not matter."""
        if self.session_id is None:
            return
        headers = {protocol.HEADER_SESSION: self.session_id}
        if self.protocol_version:
            headers[protocol.HEADER_PROTOCOL_VERSION] = self.protocol_version
        with contextlib.suppress(Exception):
            self._client.delete(self.url, headers=headers, timeout=2.0)
        self.session_id = None

    def close(self) -> None:
        """Drop every connection, also those whose answer is still awaited."""
        with self._lock:
            responses = list(self._open)
        for response in responses:
            with contextlib.suppress(Exception):
                response.close()
        self._client.close()


def failure(error: Exception, url: str) -> WireError:
    """Say what one of httpx2's failures means for the request (see the module's docstring)."""
    import httpx2

    if isinstance(error, WireError):
        return error
    text = f"{url}: {type(error).__name__}: {error}"
    unsent = (
        httpx2.ConnectError,
        httpx2.ConnectTimeout,
        httpx2.PoolTimeout,
        httpx2.UnsupportedProtocol,
        httpx2.InvalidURL,
    )
    if isinstance(error, unsent):
        return NeverLeft(text)
    return TimedOut(text) if isinstance(error, httpx2.TimeoutException) else Unanswered(text)


def _content_type(response: httpx2.Response) -> str:
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


def _answers(got: Frame, asked: Frame) -> bool:
    return got.kind in _ANSWERS and got.key == asked.key


def _events(response: httpx2.Response) -> Iterator[tuple[str, list[Frame]]]:
    import httpx2

    for event in httpx2.EventSource(response, max_event_size=MAX_BODY):
        if event.event == "message":
            yield event.id, parse(event.data.encode("utf-8")) if event.data else []
