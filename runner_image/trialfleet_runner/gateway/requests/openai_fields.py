"""Fields of OpenAI's Chat Completions and Responses APIs."""

from __future__ import annotations

from trialfleet_runner.gateway.requests.shapes import (
    DATA_URL,
    EMBEDDED,
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
    Shape,
    TextOr,
    typed_fields,
)

_STANDARD = OneOf(("auto", "default"))
_FUNCTION: dict[str, Shape] = {"name": TEXT, "description": TEXT, "parameters": FREE, "strict": FLAG}
_COMMON: dict[str, Shape] = {
    "model": MODEL,
    "stream": FLAG,
    "stream_options": Fields({"include_usage": FLAG, "include_obfuscation": FLAG}),
    "temperature": NUMBER,
    "top_p": NUMBER,
    "top_logprobs": INTEGER,
    "parallel_tool_calls": FLAG,
    "store": FLAG,
    "metadata": Labels(),
    "user": TEXT,
    "safety_identifier": TEXT,
    "prompt_cache_key": TEXT,
    "prompt_cache_retention": TEXT,
    "service_tier": _STANDARD,
}

_CACHE = typed_fields(ttl=TEXT)
_PARTS = ByType(
    {
        "text": typed_fields(text=TEXT, cache_control=_CACHE),
        "refusal": typed_fields(refusal=TEXT),
        "image_url": typed_fields(image_url=Fields({"url": DATA_URL, "detail": TEXT}), cache_control=_CACHE),
        "file": typed_fields(file=Fields({"file_data": EMBEDDED, "filename": TEXT})),
    }
)
_CALL = typed_fields(
    id=TEXT,
    index=INTEGER,
    function=Fields({"name": TEXT, "arguments": TEXT}),
    custom=Fields({"name": TEXT, "input": TEXT}),
    extra_content=Fields({"google": Fields({"thought": FLAG, "thought_signature": TEXT})}),
    cache_control=_CACHE,
)
_DETAIL: dict[str, Shape] = {"id": TEXT, "format": TEXT, "index": INTEGER}
_THOUGHTS: dict[str, Shape] = {
    **dict.fromkeys(("reasoning_content", "reasoning_opaque", "reasoning_text", "reasoning"), TEXT),
    "reasoning_details": Items(  # OpenRouter's
        ByType(
            {
                "reasoning.text": typed_fields(text=TEXT, signature=TEXT, **_DETAIL),
                "reasoning.summary": typed_fields(summary=TEXT, **_DETAIL),
                "reasoning.encrypted": typed_fields(data=TEXT, **_DETAIL),
            }
        )
    ),
    "thinking_blocks": Items(  # LiteLLM puts them into a Claude message as they are
        ByType(
            {
                "thinking": typed_fields(thinking=TEXT, signature=TEXT, cache_control=_CACHE),
                "redacted_thinking": typed_fields(data=TEXT, cache_control=_CACHE),
            }
        )
    ),
}
SPECIFIC = Labels({"thought_signature": TEXT, "thought_signatures": TEXTS})  # Gemini's, behind LiteLLM
_NAMED = Fields({"name": TEXT})
CHAT = Fields(
    {
        **_COMMON,
        "messages": Items(
            Fields(
                {
                    "role": OneOf(("system", "developer", "user", "assistant", "tool")),
                    "content": TextOr(Items(_PARTS)),
                    "name": TEXT,
                    "refusal": TEXT,
                    "tool_calls": Items(_CALL),
                    "tool_call_id": TEXT,
                    "provider_specific_fields": SPECIFIC,
                    "cache_control": _CACHE,
                    **_THOUGHTS,
                }
            )
        ),
        "tools": Items(
            ByType(
                {
                    "function": typed_fields(function=Fields(_FUNCTION), cache_control=_CACHE),
                    "custom": typed_fields(custom=Fields({"name": TEXT, "description": TEXT, "format": FREE})),
                }
            )
        ),
        "tool_choice": TextOr(typed_fields(function=_NAMED, custom=_NAMED)),
        "max_tokens": INTEGER,
        "max_completion_tokens": INTEGER,
        "n": OneOf((1,)),
        "top_k": INTEGER,
        "min_p": NUMBER,
        "stop": TextOr(TEXTS),
        "seed": INTEGER,
        "presence_penalty": NUMBER,
        "frequency_penalty": NUMBER,
        "repetition_penalty": NUMBER,
        "logit_bias": FREE,
        "logprobs": FLAG,
        "response_format": typed_fields(json_schema=FREE),
        "reasoning_effort": TEXT,
        "verbosity": TEXT,
        "modalities": Items(OneOf(("text",))),
    }
)

_INPUT_PARTS: dict[str, Fields] = {
    "input_text": typed_fields(text=TEXT),
    "output_text": typed_fields(text=TEXT, annotations=FREE, logprobs=FREE),
    "refusal": typed_fields(refusal=TEXT),
    "input_image": typed_fields(image_url=DATA_URL, detail=TEXT),
    "input_file": typed_fields(file_data=EMBEDDED, filename=TEXT, detail=TEXT),
    "text": typed_fields(text=TEXT),
    "summary_text": typed_fields(text=TEXT),
    "reasoning_text": typed_fields(text=TEXT),
    "encrypted_content": typed_fields(encrypted_content=TEXT),
}
_CONTENT = TextOr(Items(ByType(_INPUT_PARTS)))
_ITEM: dict[str, Shape] = {"id": TEXT, "status": TEXT, "call_id": TEXT, "namespace": TEXT, "metadata": FREE}
_LOCAL = ByType({"local": typed_fields(skills=OneOf(()))})
_LEAF_TOOLS = {
    "function": typed_fields(**_FUNCTION, defer_loading=FLAG, output_schema=FREE),
    "custom": typed_fields(name=TEXT, description=TEXT, format=FREE, defer_loading=FLAG),
}
_TOOLS = Items(
    ByType(  # those that the agent runs itself
        {
            **_LEAF_TOOLS,
            "namespace": typed_fields(name=TEXT, description=TEXT, tools=Items(ByType(_LEAF_TOOLS))),
            "local_shell": typed_fields(),
            "shell": Fields({"type": TEXT, "environment": _LOCAL}),
            "apply_patch": typed_fields(),
            "tool_search": Fields(
                {"type": TEXT, "execution": OneOf(("client",)), "description": TEXT, "parameters": FREE},
                needed=frozenset({"execution"}),  # OpenAI searches itself otherwise
            ),
        }
    )
)
_ITEMS = ByType(
    {
        "message": typed_fields(role=TEXT, content=_CONTENT, phase=TEXT, end_turn=FLAG, **_ITEM),
        "reasoning": typed_fields(summary=_CONTENT, content=_CONTENT, encrypted_content=TEXT, **_ITEM),
        "function_call": typed_fields(name=TEXT, arguments=TEXT, **_ITEM),
        "function_call_output": typed_fields(output=_CONTENT, name=TEXT, **_ITEM),
        "custom_tool_call": typed_fields(name=TEXT, input=TEXT, **_ITEM),
        "custom_tool_call_output": typed_fields(output=_CONTENT, name=TEXT, **_ITEM),
        "local_shell_call": typed_fields(action=FREE, **_ITEM),
        "local_shell_call_output": typed_fields(output=TEXT, **_ITEM),
        "shell_call": typed_fields(action=FREE, environment=_LOCAL, **_ITEM),
        "shell_call_output": typed_fields(output=FREE, max_output_length=INTEGER, **_ITEM),
        "apply_patch_call": typed_fields(operation=FREE, **_ITEM),
        "apply_patch_call_output": typed_fields(output=TEXT, **_ITEM),
        "tool_search_call": typed_fields(execution=OneOf(("client",)), arguments=FREE, **_ITEM),
        "tool_search_output": typed_fields(execution=OneOf(("client",)), tools=_TOOLS, **_ITEM),
        "additional_tools": typed_fields(role=TEXT, tools=_TOOLS, **_ITEM),
    },
    default="message",
    mark="role",  # an id alone refers to what the provider has stored
)
RESPONSES = Fields(
    {
        **_COMMON,
        "input": TextOr(Items(_ITEMS)),
        "instructions": TEXT,
        "tools": _TOOLS,
        "tool_choice": TextOr(typed_fields(name=TEXT, mode=TEXT, tools=FREE)),
        "max_output_tokens": INTEGER,
        "reasoning": Fields({"effort": TEXT, "summary": TEXT, "generate_summary": TEXT, "context": TEXT}),
        "text": Fields(
            {"verbosity": TEXT, "format": typed_fields(name=TEXT, schema=FREE, strict=FLAG, description=TEXT)}
        ),
        "include": Items(OneOf(("reasoning.encrypted_content", "message.output_text.logprobs"))),
        "truncation": TEXT,
        "client_metadata": FREE,
        "background": OneOf((False,)),
    }
)
