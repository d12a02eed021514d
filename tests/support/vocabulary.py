"""`python -m tests.support.vocabulary RANKS.js TARGET.xz`: the vocabulary that `trialfleet_deliveries.tokens`
reads, from js-tiktoken's `dist/ranks/o200k_base.js`. `make vocabulary` calls it."""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import sys
from collections.abc import Sequence
from pathlib import Path


def parse_ranks(script: str) -> list[bytes]:
    """The tokens in the order of their ranks. Each line has a name, the first token's rank, then tokens."""
    encoding = json.loads(script.removeprefix("export default ").removesuffix(";"))
    tokens: list[bytes] = []
    for line in encoding["bpe_ranks"].split("\n"):
        _, first, *encoded = line.split(" ")
        assert int(first) == len(tokens), f"ranks are missing before {first}"
        tokens += map(base64.b64decode, encoded)
    return tokens


def pack_vocabulary(tokens: Sequence[bytes]) -> bytes:
    """As `trialfleet_deliveries.tokens.read_vocabulary` says."""
    data = len(tokens).to_bytes(4, "big") + bytes(map(len, tokens)) + b"".join(tokens)
    return lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)


def digest_of_published(tokens: Sequence[bytes]) -> str:
    """The SHA-256 of the file that the encoding's authors publish: a line for each token, base64 and rank."""
    lines = (b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
    return hashlib.sha256(b"".join(lines)).hexdigest()


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(pack_vocabulary(parse_ranks(Path(sys.argv[1]).read_text(encoding="utf-8"))))
