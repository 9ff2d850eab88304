"""Our requests by type and version, and how they become frames (field tables: REQUESTS.md)."""

from __future__ import annotations

from broker.protocol.admin_requests import (
    CreateTopicRequest,
    DeleteTopicRequest,
    HelloRequest,
    MetadataRequest,
    ShutdownRequest,
    StatusRequest,
)
from broker.protocol.data_requests import (
    FilteredReadRequest,
    LookupRequest,
    PublishRequest,
    ReadRequest,
)
from broker.protocol.primitives import INT16, INT32, Buffer
from broker.protocol.request_fields import RequestHeader, RequestType

ExtensionRequest = (
    HelloRequest
    | PublishRequest
    | ReadRequest
    | FilteredReadRequest
    | MetadataRequest
    | LookupRequest
    | StatusRequest
    | ShutdownRequest
    | CreateTopicRequest
    | DeleteTopicRequest
)

EXTENSION_REQUESTS: dict[tuple[int, int], type[ExtensionRequest]] = {
    (RequestType.HELLO, 0): HelloRequest,
    (RequestType.PUBLISH, 0): PublishRequest,
    (RequestType.READ, 0): ReadRequest,
    (RequestType.READ, 1): FilteredReadRequest,
    (RequestType.METADATA, 0): MetadataRequest,
    (RequestType.LOOKUP, 0): LookupRequest,
    (RequestType.STATUS, 0): StatusRequest,
    (RequestType.SHUTDOWN, 0): ShutdownRequest,
    (RequestType.CREATE_TOPIC, 0): CreateTopicRequest,
    (RequestType.DELETE_TOPIC, 0): DeleteTopicRequest,
}
"""By type and version."""


def encode_extension_parts(request: ExtensionRequest, header: RequestHeader) -> list[Buffer]:
    """Return the frame of an extension request, in pieces: what is large in it is not copied."""
    body: list[Buffer]
    body = request.encode_parts() if isinstance(request, PublishRequest) else [request.encode()]
    parts: list[Buffer] = [INT16.pack(request.TYPE), header.encode(), *body]
    return [INT32.pack(sum(map(len, parts))), *parts]
