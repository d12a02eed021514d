"""Fields of Google's Gemini API."""

from __future__ import annotations

from trialfleet_runner.gateway.requests.shapes import (
    FLAG,
    FREE,
    INTEGER,
    MODEL,
    NUMBER,
    TEXT,
    TEXTS,
    Fields,
    Items,
    OneOf,
    spelled,
)

_INLINE = spelled(mimeType=TEXT, data=TEXT, displayName=TEXT)
_PART = spelled(
    text=TEXT,
    thought=FLAG,
    thoughtSignature=TEXT,
    inlineData=_INLINE,
    functionCall=spelled(id=TEXT, name=TEXT, args=FREE),
    functionResponse=spelled(
        id=TEXT, name=TEXT, response=FREE, parts=Items(spelled(inlineData=_INLINE, text=TEXT))
    ),
)
_CONTENT = spelled(role=TEXT, parts=Items(_PART))
_FUNCTION = spelled(
    name=TEXT,
    description=TEXT,
    parameters=FREE,
    parametersJsonSchema=FREE,
    response=FREE,
    responseJsonSchema=FREE,
    behavior=TEXT,
)
_GENERATION = spelled(
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
    thinkingConfig=spelled(thinkingBudget=INTEGER, includeThoughts=FLAG, thinkingLevel=TEXT),
    seed=INTEGER,
    presencePenalty=NUMBER,
    frequencyPenalty=NUMBER,
    responseLogprobs=FLAG,
    logprobs=INTEGER,
    mediaResolution=TEXT,
)
GEMINI = spelled(
    contents=Items(_CONTENT),
    systemInstruction=_CONTENT,
    tools=Items(spelled(functionDeclarations=Items(_FUNCTION))),
    toolConfig=spelled(functionCallingConfig=FREE),
    safetySettings=Items(spelled(category=TEXT, threshold=TEXT, method=TEXT)),
    generationConfig=_GENERATION,
    labels=FREE,
)
GEMINI_COUNTED = Fields(
    {**GEMINI.known, "generateContentRequest": GEMINI | {"model": MODEL}, "model": MODEL}, GEMINI.twins
)
