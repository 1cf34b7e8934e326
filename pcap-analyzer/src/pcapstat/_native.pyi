from typing import Any, final

class NativeError(Exception):
    kind: str
    path: str
    offset: int | None
    frame: int | None
    cause: str
    remedy: str

@final
class ArrowStream:
    @property
    def damage(self) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class Reader:
    def __new__(
        cls,
        paths: list[str],
        *,
        decode_as: list[str] = ...,
        stop_after: int | None = None,
        payload_size: int | None = None,
        mqtt_version: int | None = None,
        show_payload: bool = False,
        show_secrets: bool = False,
    ) -> Reader: ...
    def summary(self) -> dict[str, Any]: ...
    def table(self, name: str) -> ArrowStream: ...

def version() -> str: ...
def schema() -> list[dict[str, Any]]: ...
def protocols() -> list[dict[str, Any]]: ...
def note_kinds() -> list[dict[str, Any]]: ...
def decode(protocol: str, data: bytes, from_client: bool = True) -> list[dict[str, Any]]: ...
