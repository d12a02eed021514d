"""Writes price_list.json again from LiteLLM's table of prices, a JSON file. It uses no network.

The table is model_prices_and_context_window_backup.json in the package litellm: pip download --no-deps litellm
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trialfleet_ledger.prices import PRICE_LIST, LongPrompt, Price, PriceList, bare, read_price_list
from trialfleet_ledger.untrusted import finite, json_object, mapping

_TIERS = ("priority", "flex")
_LONG = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
_HOSTS = re.compile("anthropic|openai|gemini|vertex_ai")  # entries without a prefix: list prices


def refresh_prices(
    old: PriceList, table: Mapping[str, Any], *, as_of: str, source: str
) -> tuple[PriceList, list[str]]:
    """The list with the table's prices, and the models that the table lacks, which keep their price."""
    entries = {name: entry for name in table if (entry := mapping(table[name])) and _is_listed(name, entry)}
    by_bare = {bare(name): entry for name, entry in entries.items()}
    rows = {model: read_price(model, entries.get(model) or by_bare.get(model) or {}) for model in old.models}
    models = {model: row or old.models[model] for model, row in rows.items()}
    return PriceList(as_of=as_of, source=source, models=models), [model for model, row in rows.items() if not row]


def _is_listed(name: str, entry: Mapping[str, Any]) -> bool:
    return "/" not in name and _HOSTS.match(str(entry.get("litellm_provider"))) is not None


def read_price(model: str, entry: Mapping[str, Any]) -> Price | None:
    """The price that an entry of the table states; None: it states none."""
    sent, output = _usd(entry, "input_cost_per_token"), _usd(entry, "output_cost_per_token")
    if sent is None or output is None:
        return None
    written = _usd(entry, "cache_creation_input_token_cost") if model.startswith("claude") else None
    hour = _usd(entry, "cache_creation_input_token_cost_above_1hr") if model.startswith("claude") else None
    read = _usd(entry, "cache_read_input_token_cost")
    tiers = {
        tier: price / sent for tier in _TIERS if sent and (price := _usd(entry, f"input_cost_per_token_{tier}"))
    }
    return Price(
        input=sent,
        output=output,
        cache_read=sent if read is None else read,
        cache_write=sent if written is None else written,
        cache_write_1h=hour or written or sent,
        long_prompt=_long_prompt(entry),
        window=_window(entry),
        tiers={tier: round(factor, 6) for tier, factor in tiers.items()},
    )


def _long_prompt(entry: Mapping[str, Any]) -> LongPrompt | None:
    for name in entry:
        if found := _LONG.fullmatch(name):
            sent = _usd(entry, name)
            output = _usd(entry, f"output_cost_per_token_above_{found[1]}k_tokens")
            if sent is not None and output is not None:
                return LongPrompt(above=int(found[1]) * 1000, input=sent, output=output)
    return None


def _window(entry: Mapping[str, Any]) -> int | None:
    tokens = entry.get("max_input_tokens")
    return tokens if isinstance(tokens, int) and tokens > 0 else None


def _usd(entry: Mapping[str, Any], name: str) -> float | None:
    """US dollars per million tokens; the table has them per token."""
    price = finite(entry.get(name))
    return None if price is None else round(price * 1e6, 6)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path, help="LiteLLM's table")
    parser.add_argument(
        "--as-of", default=f"{datetime.now(UTC):%Y-%m-%d}", help="date of the prices (default: today)"
    )
    parser.add_argument("--source", default="LiteLLM's table", help="what the list names as its source")
    given = parser.parse_args(argv)
    table = json_object(given.table.read_bytes())
    new, lacking = refresh_prices(read_price_list(), table, as_of=given.as_of, source=given.source)
    rows = new.model_dump(mode="json", exclude_defaults=True)
    PRICE_LIST.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(f"{len(new.models)} models; not in the table, unchanged: {', '.join(lacking) or 'none'}")


if __name__ == "__main__":
    main()
