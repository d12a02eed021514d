"""Requests in the four APIs: one with all that agents send, and shapes that a provider would act on itself."""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]
MESSAGES, CHAT, RESPONSES = "/v1/messages", "/v1/chat/completions", "/v1/responses"
GEMINI = "/v1beta/models/gemini-2.5-pro:generateContent"
PNG = "data:image/png;base64,iVBORw0KGgo="
_CACHE = {"type": "ephemeral", "ttl": "1h", "scope": "global"}
_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
_TEXT = {"type": "text", "text": "x"}
_DOCUMENT = {"type": "document", "source": {"type": "content", "content": [_TEXT, _IMAGE]}, "title": "t"}

FULL: dict[str, Json] = {
    MESSAGES: {
        "model": "claude-sonnet-4-6",
        "max_tokens": 32000,
        "stream": False,
        "temperature": 1,
        "metadata": {"user_id": "u"},
        "system": [{**_TEXT, "cache_control": _CACHE}],
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "medium"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
        "tools": [
            {
                "name": "Read",
                "description": "d",
                "input_schema": {"type": "object"},
                "eager_input_streaming": True,
            },
            {"type": "custom", "name": "Edit", "input_schema": {}, "cache_control": _CACHE, "defer_loading": True},
            {"type": "bash_20250124", "name": "bash"},
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 10},
        ],
        "messages": [
            {"role": "user", "content": [_TEXT, _IMAGE, _DOCUMENT]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "redacted_thinking", "data": "d"},
                    {"type": "tool_use", "id": "1", "name": "Read", "input": {"path": "a"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": [_TEXT, _IMAGE], "is_error": False}
                ],
            },
            {"role": "system", "content": "later"},
        ],
    },
    CHAT: {
        "model": "gpt-5.2",
        "stream": False,
        "n": 1,
        "max_completion_tokens": 100,
        "temperature": 0.5,
        "tool_choice": "auto",
        "reasoning_effort": "high",
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}, "strict": False}}],
        "messages": [
            {"role": "system", "content": "s"},
            {
                "role": "user",
                "content": [_TEXT, {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}],
            },
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "r",
                "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "1", "content": "ok"},
        ],
    },
    RESPONSES: {
        "model": "gpt-5.2",
        "stream": False,
        "store": False,
        "instructions": "i",
        "max_output_tokens": 100,
        "parallel_tool_calls": True,
        "prompt_cache_key": "k",
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "low"},
        "tools": [
            {"type": "function", "name": "f", "parameters": {}, "strict": False},
            {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}},
            {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g", "parameters": {}}]},
            {"type": "shell", "environment": {"type": "local"}},
            {"type": "local_shell"},
        ],
        "input": [
            {"role": "developer", "content": [{"type": "input_text", "text": "d"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": PNG}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "e"},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "ok"},
        ],
    },
    GEMINI: {
        "systemInstruction": {"parts": [{"text": "s"}], "role": "user"},
        "generationConfig": {
            "temperature": 1,
            "topP": 0.95,
            "maxOutputTokens": 100,
            "candidateCount": 1,
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": -1},
        },
        "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {}}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "contents": [
            {"role": "user", "parts": [{"text": "x"}, {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "o"}}}]},
        ],
    },
}


class Hosted(NamedTuple):
    """`fields`: would make the provider reach out, keep something or charge more; `control`: the same place as an
    agent may use it."""

    path: str
    fields: Json
    control: Json


def _said(path: str, part: Json) -> Json:
    """The part in the user's first message."""
    if path == GEMINI:
        return {"contents": [{"role": "user", "parts": [part]}]}
    return {"input" if path == RESPONSES else "messages": [{"role": "user", "content": [part]}]}


def _in_result(path: str, part: Json) -> Json:
    """The part in the result of a tool."""
    if path == GEMINI:
        return {"contents": [{"parts": [{"functionResponse": {"name": "f", "response": {}, "parts": [part]}}]}]}
    if path == RESPONSES:
        return {"input": [{"type": "function_call_output", "call_id": "1", "output": [part]}]}
    result = {"type": "tool_result", "tool_use_id": "1", "content": [part]}
    return {"messages": [{"role": "user", "content": [result]}]}


def _by_address(kind: str, source: Json) -> Json:
    return {"type": kind, "source": source}


_URL, _FILE = {"type": "url", "url": "https://x"}, {"type": "file", "file_id": "f"}
_ADDRESSES = [_by_address(kind, source) for kind in ("image", "document") for source in (_URL, _FILE)]
_NESTED = [{"type": "document", "source": {"type": "content", "content": [part]}} for part in _ADDRESSES[:2]]
_CLAUDE_TOOLS = (
    "web_search_20250305",
    "web_fetch_20250910",
    "code_execution_20250825",
    "mcp_toolset",
    "tool_search_tool_regex_20251119",
    "bash_code_execution_20250825",
    "made_up_20271231",
)
_GPT_TOOLS: list[Json] = [
    *({"type": kind} for kind in ("web_search", "web_search_preview", "image_generation", "made_up")),
    {"type": "file_search", "vector_store_ids": ["v"]},
    {"type": "code_interpreter", "container": {"type": "auto"}},
    {"type": "mcp", "server_url": "https://x"},
    {"type": "shell", "environment": {"type": "container_auto"}},
    {"type": "shell", "environment": {"type": "container_reference", "container_id": "c"}},
    {"type": "shell", "container": "c"},
    {"type": "tool_search"},
    {"type": "tool_search", "execution": None},
    {"type": "tool_search", "execution": "server"},
]
_FUNCTION = {"type": "function", "name": "f"}
_GPT_FILES: list[Json] = [
    {"type": "input_image", "image_url": "https://x"},
    {"type": "input_image", "file_id": "f"},
    {"type": "input_file", "file_url": "https://x"},
    {"type": "input_file", "file_id": "f"},
]
_GPT_IMAGE = {"type": "input_image", "image_url": PNG}
_GOOGLE_TOOLS = (
    "googleSearch",
    "google_search_retrieval",
    "codeExecution",
    "url_context",
    "googleMaps",
    "fileSearch",
)
_GOOGLE_FILE = {"fileData": {"fileUri": "https://x"}}
_INLINE = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}

_PDF, _AT = {"filename": "f.pdf", "file_data": "data:application/pdf;base64,JVBE"}, "https://x/f.pdf"


def _base64(kind: str, data: str) -> Json:
    return {"type": kind, "source": {"type": "base64", "media_type": "image/png", "data": data}}


# Addresses in the place of data: gateways in front of a provider fetch them.
_AS_DATA = [
    Hosted(
        CHAT,
        _said(CHAT, {"type": "file", "file": {**_PDF, "file_data": _AT}}),
        _said(CHAT, {"type": "file", "file": _PDF}),
    ),
    Hosted(
        RESPONSES,
        _said(RESPONSES, {"type": "input_file", **_PDF, "file_data": _AT}),
        _said(RESPONSES, {"type": "input_file", **_PDF}),
    ),
    *(
        Hosted(MESSAGES, _said(MESSAGES, _base64(kind, _AT)), _said(MESSAGES, _base64(kind, "iVBO")))
        for kind in ("image", "document")
    ),
    Hosted(
        GEMINI,
        _said(GEMINI, {"inlineData": {"mimeType": "image/png", "data": "gs://b/x"}}),
        _said(GEMINI, _INLINE),
    ),
]

# What LiteLLM and OpenRouter put into the request of another API as it is.
_THINKING = {"type": "thinking", "thinking": "t", "signature": "s"}
_REDACTED = {"type": "redacted_thinking", "data": "d"}


def _spoken(**fields: Any) -> Json:
    return {"messages": [{"role": "assistant", "content": "c", **fields}]}


_PASSED_THROUGH = [
    *(
        Hosted(CHAT, _spoken(thinking_blocks=[_THINKING, odd]), _spoken(thinking_blocks=[_THINKING, _REDACTED]))
        for odd in (*_ADDRESSES, {"type": "text", "text": "x"}, {**_THINKING, "source": _URL})
    ),
    Hosted(
        CHAT,
        _spoken(reasoning_details=[{"type": "image", "source": _URL}]),
        _spoken(reasoning_details=[{"type": "reasoning.text", "text": "t", "index": 0, "format": "f"}]),
    ),
    *(
        Hosted(CHAT, _spoken(**{name: [_ADDRESSES[0]]}), _spoken(**{name: "r"}))
        for name in ("reasoning", "reasoning_content", "reasoning_text", "reasoning_opaque")
    ),
    Hosted(CHAT, {"metadata": ["guardrails"]}, {"metadata": {"guardrails": ["g"]}}),
]

HOSTED: list[Hosted] = [
    *_AS_DATA,
    *_PASSED_THROUGH,
    *(
        Hosted(MESSAGES, {"tools": [{"type": kind, "name": "t"}]}, {"tools": [{"name": "t"}]})
        for kind in _CLAUDE_TOOLS
    ),
    Hosted(MESSAGES, {"tools": {"type": "web_search_20250305"}}, {"tools": [{"type": "custom", "name": "t"}]}),
    Hosted(
        MESSAGES,
        {"tools": [{"name": "t", "allowed_callers": ["code_execution_20250825"]}]},
        {"tools": [{"name": "t", "allowed_callers": ["direct"]}]},
    ),
    Hosted(MESSAGES, {"service_tier": "auto"}, {"service_tier": "standard_only"}),
    *(
        Hosted(MESSAGES, {name: value}, {})
        for name, value in {
            "mcp_servers": [{"type": "url", "url": "https://x"}],
            "container": {"skills": []},
            "speed": "fast",
            "inference_geo": "us",
            "fallbacks": [{"model": "m"}],
            "context_management": {"edits": [{"type": "compact_20260112"}]},
        }.items()
    ),
    *(Hosted(MESSAGES, _said(MESSAGES, part), _said(MESSAGES, _IMAGE)) for part in [*_ADDRESSES, *_NESTED]),
    *(
        Hosted(MESSAGES, _in_result(MESSAGES, part), _in_result(MESSAGES, _DOCUMENT))
        for part in [*_ADDRESSES, *_NESTED]
    ),
    Hosted(MESSAGES, _said(MESSAGES, {"type": "container_upload", "file_id": "f"}), _said(MESSAGES, _TEXT)),
    *(Hosted(RESPONSES, {"tools": [tool]}, {"tools": [_FUNCTION]}) for tool in _GPT_TOOLS),
    *(Hosted(RESPONSES, {"tools": tool}, {"tools": []}) for tool in _GPT_TOOLS),
    *(
        Hosted(
            RESPONSES,
            {"tools": [{"type": "namespace", "name": "n", "tools": [tool]}]},
            {"tools": [{"type": "namespace", "name": "n", "tools": [_FUNCTION]}]},
        )
        for tool in _GPT_TOOLS
    ),
    *(
        Hosted(
            RESPONSES,
            {"input": [{"type": "additional_tools", "tools": [tool]}]},
            {"input": [{"type": "additional_tools", "tools": [_FUNCTION]}]},
        )
        for tool in _GPT_TOOLS
    ),
    *(Hosted(RESPONSES, _said(RESPONSES, part), _said(RESPONSES, _GPT_IMAGE)) for part in _GPT_FILES),
    *(Hosted(RESPONSES, _in_result(RESPONSES, part), _in_result(RESPONSES, _GPT_IMAGE)) for part in _GPT_FILES),
    *(
        Hosted(RESPONSES, {"input": [item]}, {"input": [{"role": "user", "content": "x"}]})
        for item in ({"type": "item_reference", "id": "i"}, {"id": "i"}, {"type": None, "id": "i", "role": None})
    ),
    Hosted(
        RESPONSES,
        {"tools": [{"type": "tool_search"}]},
        {"tools": [{"type": "tool_search", "execution": "client", "parameters": {}}]},
    ),
    Hosted(RESPONSES, {"background": True}, {"background": False}),
    Hosted(RESPONSES, {"service_tier": "priority"}, {"service_tier": "default"}),
    *(
        Hosted(RESPONSES, {name: value}, {})
        for name, value in {
            "previous_response_id": "r",
            "conversation": "c",
            "prompt": {"id": "p"},
            "context_management": [{"type": "compaction"}],
        }.items()
    ),
    *(
        Hosted(CHAT, {name: value}, {name: control})
        for name, value, control in (
            ("n", 100, 1),
            ("n", True, 1),
            ("service_tier", "priority", "default"),
            ("modalities", ["text", "audio"], ["text"]),
        )
    ),
    *(
        Hosted(CHAT, {name: value}, {})
        for name, value in {
            "web_search_options": {},
            "audio": {"voice": "v"},
            "prediction": {"type": "content", "content": "x"},
            "best_of": 9,
            "api_base": "https://x",
            "fallbacks": ["m"],
            "plugins": [{"id": "web"}],
        }.items()
    ),
    *(
        Hosted(CHAT, {"tools": tools}, {"tools": [{"type": "function", "function": {"name": "f"}}]})
        for tools in ([{"type": "web_search"}], {"type": "function"}, [{"type": "mcp"}], [{"google_search": {}}])
    ),
    *(
        Hosted(CHAT, _said(CHAT, part), _said(CHAT, {"type": "image_url", "image_url": {"url": PNG}}))
        for part in (
            {"type": "image_url", "image_url": {"url": "https://x"}},
            {"type": "image_url", "image_url": {"url": "gs://x"}},
            {"type": "file", "file": {"file_id": "f"}},
            {"type": "video_url", "video_url": {"url": "https://x"}},
        )
    ),
    *(
        Hosted(GEMINI, {"tools": [{name: {}}]}, {"tools": [{"functionDeclarations": []}]})
        for name in _GOOGLE_TOOLS
    ),
    *(Hosted(GEMINI, {"tools": {name: {}}}, {"tools": []}) for name in _GOOGLE_TOOLS),
    Hosted(GEMINI, _said(GEMINI, _GOOGLE_FILE), _said(GEMINI, _INLINE)),
    Hosted(GEMINI, _in_result(GEMINI, _GOOGLE_FILE), _in_result(GEMINI, _INLINE)),
    *(
        Hosted(GEMINI, {"generationConfig": {name: value}}, {"generationConfig": {name: control}})
        for name, value, control in (
            ("candidateCount", 4, 1),
            ("candidate_count", "4", 1),
            ("maxOutputTokens", "9", 9),
            ("responseModalities", ["IMAGE"], ["TEXT"]),
        )
    ),
    Hosted(
        GEMINI,
        {"generationConfig": {"maxOutputTokens": 9, "max_output_tokens": 9}},
        {"generationConfig": {"max_output_tokens": 9}},
    ),
    *(Hosted(GEMINI, {name: "x"}, {}) for name in ("cachedContent", "cached_content", "serviceTier", "model")),
]
