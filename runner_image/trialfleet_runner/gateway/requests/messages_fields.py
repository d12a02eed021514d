"""Fields of Anthropic's Messages API."""

from __future__ import annotations

from trialfleet_runner.gateway.requests.shapes import (
    BASE64,
    FLAG,
    FREE,
    INTEGER,
    MODEL,
    NUMBER,
    TEXT,
    TEXTS,
    ByType,
    Fields,
    Items,
    Labels,
    OneOf,
    TextOr,
    typed_fields,
)

# Hints that Anthropic's own API alone knows. Without them the answer is the same.
FIRST_PARTY_HINTS = frozenset({"scope", "eager_input_streaming", "service_tier", "betas"})

CACHE = typed_fields(ttl=OneOf(("5m", "1h")), scope=TEXT)
_CITATIONS = Fields({"enabled": FLAG})
_TEXT = typed_fields(text=TEXT, citations=FREE, cache_control=CACHE)
_BASE64 = typed_fields(media_type=TEXT, data=BASE64)
_PLAIN = typed_fields(media_type=OneOf(("text/plain",)), data=TEXT)
_IMAGE = typed_fields(source=ByType({"base64": _BASE64}), cache_control=CACHE)
_PARTS = {"text": _TEXT, "image": _IMAGE}
_DOCUMENT = typed_fields(
    source=ByType(
        {"base64": _BASE64, "text": _PLAIN, "content": typed_fields(content=TextOr(Items(ByType(_PARTS))))}
    ),
    title=TEXT,
    context=TEXT,
    citations=_CITATIONS,
    cache_control=CACHE,
)
_SEARCH_RESULT = typed_fields(
    source=TEXT,  # a name for citations; nobody fetches it
    title=TEXT,
    content=Items(ByType({"text": _TEXT})),
    citations=_CITATIONS,
    cache_control=CACHE,
)
_RESULT_PARTS = {
    **_PARTS,
    "document": _DOCUMENT,
    "search_result": _SEARCH_RESULT,
    "tool_reference": typed_fields(tool_name=TEXT, cache_control=CACHE),
}
_CALLER = ByType({"direct": typed_fields()})
_BLOCKS = {
    **_PARTS,
    "document": _DOCUMENT,
    "search_result": _SEARCH_RESULT,
    "tool_use": typed_fields(id=TEXT, name=TEXT, input=FREE, caller=_CALLER, cache_control=CACHE),
    "tool_result": typed_fields(
        tool_use_id=TEXT, content=TextOr(Items(ByType(_RESULT_PARTS))), is_error=FLAG, cache_control=CACHE
    ),
    "thinking": typed_fields(thinking=TEXT, signature=TEXT),
    "redacted_thinking": typed_fields(data=TEXT),
}
_TOOL = {
    "name": TEXT,
    "cache_control": CACHE,
    "strict": FLAG,
    "defer_loading": FLAG,
    "eager_input_streaming": FLAG,
    "input_examples": FREE,
    "allowed_callers": Items(OneOf(("direct",))),
}
_SCREEN = {
    "display_width_px": INTEGER,
    "display_height_px": INTEGER,
    "display_number": INTEGER,
    "enable_zoom": FLAG,
}
_EDIT_KEEP = {"type": TEXT, "trigger": FREE, "keep": FREE, "clear_at_least": FREE, "exclude_tools": TEXTS}
_TOOLS = ByType(  # those that the agent runs itself
    {
        "custom": typed_fields(description=TEXT, input_schema=FREE, **_TOOL),
        "bash_*": typed_fields(**_TOOL),
        "text_editor_*": typed_fields(max_characters=INTEGER, **_TOOL),
        "memory_*": typed_fields(**_TOOL),
        "computer_*": typed_fields(**_SCREEN, **_TOOL),
    },
    default="custom",
)
_FORMAT = typed_fields(schema=FREE)
METADATA = Labels({"user_id": TEXT})

MESSAGES = Fields(
    {
        "model": MODEL,
        "system": TextOr(Items(ByType({"text": _TEXT}))),
        "messages": Items(
            Fields(
                {
                    "role": OneOf(("user", "assistant", "system")),
                    "content": TextOr(Items(ByType(_BLOCKS))),
                }
            )
        ),
        "tools": Items(_TOOLS),
        "tool_choice": typed_fields(name=TEXT, disable_parallel_tool_use=FLAG),
        "thinking": typed_fields(budget_tokens=INTEGER, display=TEXT),
        "context_management": Fields(
            {
                "edits": Items(
                    ByType(
                        {
                            "clear_tool_uses_*": Fields({**_EDIT_KEEP, "clear_tool_inputs": FREE}),
                            "clear_thinking_*": Fields(_EDIT_KEEP),
                        }
                    )
                )
            }
        ),
        "output_config": Fields({"effort": TEXT, "format": _FORMAT, "task_budget": FREE}),
        "output_format": _FORMAT,
        "cache_control": CACHE,
        "betas": TEXTS,
        "max_tokens": INTEGER,
        "stream": FLAG,
        "temperature": NUMBER,
        "top_p": NUMBER,
        "top_k": INTEGER,
        "stop_sequences": TEXTS,
        "metadata": METADATA,
        "service_tier": OneOf(("standard_only",)),
    }
)
