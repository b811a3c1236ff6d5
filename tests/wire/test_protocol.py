"""The constants declared here are the SDK's own, and so is the header codec."""

from __future__ import annotations

import mcp_types
import pytest
from mcp.shared import inbound
from mcp_types import jsonrpc, version

from fencekit.wire import protocol


def test_versions_keys_and_codes_match_the_sdk():
    assert protocol.HANDSHAKE_VERSIONS == version.HANDSHAKE_PROTOCOL_VERSIONS
    assert protocol.MODERN_VERSIONS == version.MODERN_PROTOCOL_VERSIONS
    assert protocol.META_PROTOCOL_VERSION == mcp_types.PROTOCOL_VERSION_META_KEY
    assert protocol.META_CLIENT_INFO == mcp_types.CLIENT_INFO_META_KEY
    assert protocol.META_CLIENT_CAPABILITIES == mcp_types.CLIENT_CAPABILITIES_META_KEY
    assert protocol.META_SERVER_INFO == mcp_types.SERVER_INFO_META_KEY
    assert protocol.META_LOG_LEVEL == mcp_types.LOG_LEVEL_META_KEY
    assert dict(inbound.NAME_BEARING_METHODS) == protocol.NAME_BEARING
    names = [name for name, value in vars(protocol).items() if isinstance(value, int)]
    assert len(names) == 11
    for name in names:
        assert getattr(protocol, name) == getattr(jsonrpc, name), name


@pytest.mark.parametrize(
    "value", ["charge_card", "größe", " edge ", "=?base64?eA==?=", "a\nb", "", "=?base64??="]
)
def test_header_values_are_encoded_as_the_sdk_decodes_them(value):
    assert protocol.encode_header_value(value) == inbound.encode_header_value(value)
    assert inbound.decode_header_value(protocol.encode_header_value(value)) == value


def test_param_headers_match_the_sdk():
    schema = {
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "flag": {"type": "boolean", "x-mcp-header": "Flag"},
            "absent": {"type": "string", "x-mcp-header": "Absent"},
            "plain": {"type": "string"},
        }
    }
    arguments = {"region": "é", "deep": {"n": 7}, "flag": True, "plain": "x"}

    expected = inbound.mcp_param_headers(inbound.x_mcp_header_map(schema), arguments)

    assert protocol.param_headers(schema, arguments) == expected
