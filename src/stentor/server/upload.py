"""A multipart form on its way in: its file goes straight to the spool folder, its fields stay small.

Owns the form's limits and the life of the spooled file. Starlette's parser would write the file to a temporary file of
its own, to be copied from there; here each byte passes once, and memory is one buffer however long the upload. Knows
no field's meaning, and never the client's name for the file.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from ..errors import InvalidRequest, TooLarge, Unavailable, UndecodableAudio
from ..protocol import new_id

MOST_PARTS = 128
MOST_HEADER_BYTES = 8 * 1024  # of one part
MOST_FIELD_BYTES = 256 * 1024  # of all fields together, beside the file
WRITE_SIZE = 1024 * 1024  # a write of this size goes to a thread: a slow disk must not hold the event loop


class Upload:
    """The received form: the fields as they came, in order, and the file. As a context, it removes the file."""

    def __init__(self, path: Path, fields: list[tuple[str, str]]) -> None:
        self.path = path
        self.fields = fields

    def __enter__(self) -> Upload:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.path.unlink(missing_ok=True)


async def receive(request: Request, folder: Path, limit: int, patience: float) -> Upload:
    """The form of a request, its file spooled under a name of ours.

    Raises TooLarge past `limit` bytes (at once where the length is announced), InvalidRequest for what is no form with
    one file or where nothing arrives for `patience` seconds, UndecodableAudio for an empty file. Then nothing stays on
    the disk.
    """
    form = _Form()
    parser = _parser(request, form)
    _require_length(request, limit)
    upload = Upload(folder / new_id(), form.fields)
    with contextlib.ExitStack() as undo:
        undo.enter_context(upload)
        with _disk_errors(), upload.path.open("xb") as file:
            async for chunk in _bounded(request.stream(), limit, patience):
                _parse(parser, chunk)
                await _write(form, file, WRITE_SIZE)
            await _write(form, file, 1)
        form.require_whole(upload.path.stat().st_size)
        undo.pop_all()
    return upload


def _parser(request: Request, form: _Form) -> MultipartParser:
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != b"multipart/form-data":
        raise InvalidRequest("Send the audio as multipart/form-data with a field named 'file'.", param="file")
    if not options.get(b"boundary"):
        raise InvalidRequest("The Content-Type of the form names no boundary; let your HTTP client write this header.")
    try:
        return MultipartParser(
            options[b"boundary"],
            {
                "on_part_begin": form.begin,
                "on_header_field": form.header_name,
                "on_header_value": form.header_value,
                "on_header_end": form.header_end,
                "on_headers_finished": form.headers_finished,
                "on_part_data": form.data,
                "on_part_end": form.end,
                "on_end": form.finish,
            },
        )
    except FormParserError as error:
        raise InvalidRequest(f"The multipart form cannot be read: {error}.") from error


def _parse(parser: MultipartParser, chunk: bytes) -> None:
    try:
        parser.write(chunk)
    except FormParserError as error:
        raise InvalidRequest(f"The multipart form cannot be read: {error}.") from error


def _require_length(request: Request, limit: int) -> None:
    """Refuse by the announced length, before the client sends what would be thrown away."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise _too_large(limit)


async def _bounded(stream: AsyncIterator[bytes], limit: int, patience: float) -> AsyncIterator[bytes]:
    received = 0
    try:
        while True:
            async with asyncio.timeout(patience):
                chunk = await anext(stream, None)
            if chunk is None:
                return
            received += len(chunk)
            if received > limit:
                raise _too_large(limit)
            yield chunk
    except TimeoutError as error:
        raise InvalidRequest(f"Nothing of the upload arrived for {patience:g} s (setting client_timeout).") from error
    except ClientDisconnect as error:  # nobody reads this answer; it makes the log and the metrics right
        raise InvalidRequest("The connection ended in the middle of the upload.") from error


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"The upload is over {limit // 2**20} MiB (setting max_upload_mb); send it in parts or compressed.",
        param="file",
    )


async def _write(form: _Form, file: BinaryIO, least: int) -> None:
    if len(form.held) >= least:
        held, form.held = form.held, bytearray()
        await asyncio.to_thread(file.write, held)


@contextlib.contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"The upload cannot be stored: {error.strerror}. Free some space on the server.") from error


class _Form:
    """What the parser finds, part by part. `held`: bytes of the file that are not written yet."""

    def __init__(self) -> None:
        self.fields: list[tuple[str, str]] = []
        self.held = bytearray()
        self._files = 0
        self._parts = 0
        self._room = MOST_FIELD_BYTES
        self._complete = False
        self._header_bytes = 0
        self._header, self._content = bytearray(), bytearray()
        self._disposition = b""
        self._name = ""
        self._value = bytearray()

    def begin(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise InvalidRequest(f"The form has more than {MOST_PARTS} fields.")
        self._header_bytes = 0
        self._disposition = b""
        self._value = bytearray()

    def header_name(self, data: bytes, start: int, end: int) -> None:
        self._header += self._of_header(data, start, end)

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._content += self._of_header(data, start, end)

    def _of_header(self, data: bytes, start: int, end: int) -> bytes:
        self._header_bytes += end - start
        if self._header_bytes > MOST_HEADER_BYTES:
            raise InvalidRequest(f"A part of the form has more than {MOST_HEADER_BYTES} bytes of headers.")
        return data[start:end]

    def header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = bytes(self._content)
        self._header, self._content = bytearray(), bytearray()

    def headers_finished(self) -> None:
        name = parse_options_header(self._disposition)[1].get(b"name")
        if not name:
            raise InvalidRequest("A part of the form has no name in its Content-Disposition.")
        self._name = name.decode("utf-8", "replace")
        self._files += self._name == "file"
        if self._files > 1:
            raise InvalidRequest("The form has more than one file; send one request for each.", param="file")

    def data(self, data: bytes, start: int, end: int) -> None:
        if self._name == "file":
            self.held += memoryview(data)[start:end]
            return
        self._room -= end - start
        if self._room < 0:
            raise TooLarge(f"The fields beside the file are over {MOST_FIELD_BYTES // 1024} KiB.", param=self._name)
        self._value += data[start:end]

    def end(self) -> None:
        if self._name == "file":
            return
        try:
            self.fields.append((self._name, self._value.decode()))
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"The field {self._name!r} is not UTF-8.", param=self._name) from error

    def finish(self) -> None:
        self._complete = True

    def require_whole(self, size: int) -> None:
        """Raises what is wrong with the form now that no more of it comes."""
        if not self._complete:
            raise InvalidRequest("The multipart form is cut short: its closing boundary is missing.")
        if not self._files:
            raise InvalidRequest("The form has no file in the field 'file'.", param="file")
        if not size:
            raise UndecodableAudio("The uploaded file is empty.", param="file")
