"""Fields of Google's Gemini API."""

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
    Fields,
    Items,
    Labels,
    OneOf,
    google_fields,
)

_INLINE = google_fields(mimeType=TEXT, data=BASE64, displayName=TEXT)
_PART = google_fields(
    text=TEXT,
    thought=FLAG,
    thoughtSignature=TEXT,
    inlineData=_INLINE,
    functionCall=google_fields(id=TEXT, name=TEXT, args=FREE),
    functionResponse=google_fields(
        id=TEXT, name=TEXT, response=FREE, parts=Items(google_fields(inlineData=_INLINE, text=TEXT))
    ),
)
_CONTENT = google_fields(role=TEXT, parts=Items(_PART))
_FUNCTION = google_fields(
    name=TEXT,
    description=TEXT,
    parameters=FREE,
    parametersJsonSchema=FREE,
    response=FREE,
    responseJsonSchema=FREE,
    behavior=TEXT,
)
_GENERATION = google_fields(
    temperature=NUMBER,
    topP=NUMBER,
    topK=NUMBER,
    maxOutputTokens=INTEGER,
    candidateCount=OneOf((1,)),
    stopSequences=TEXTS,
    responseMimeType=TEXT,
    responseSchema=FREE,
    responseJsonSchema=FREE,
    responseModalities=Items(OneOf(("TEXT",))),
    thinkingConfig=google_fields(thinkingBudget=INTEGER, includeThoughts=FLAG, thinkingLevel=TEXT),
    seed=INTEGER,
    presencePenalty=NUMBER,
    frequencyPenalty=NUMBER,
    responseLogprobs=FLAG,
    logprobs=INTEGER,
    mediaResolution=TEXT,
)
GEMINI = google_fields(
    contents=Items(_CONTENT),
    systemInstruction=_CONTENT,
    tools=Items(google_fields(functionDeclarations=Items(_FUNCTION))),
    toolConfig=google_fields(functionCallingConfig=FREE),
    safetySettings=Items(google_fields(category=TEXT, threshold=TEXT, method=TEXT)),
    generationConfig=_GENERATION,
    labels=Labels(),
)
GEMINI_COUNTED = Fields(
    {**GEMINI.known, "generateContentRequest": GEMINI | {"model": MODEL}, "model": MODEL}, GEMINI.twins
)
