"""Prices of an order."""

from __future__ import annotations


def total(prices: list[float], discount: float | None = None) -> float:
    """The sum of the prices, less a discount in percent."""
    amount = sum(prices)
    if discount is not None:
        amount -= amount * discount / 100
    return round(amount, 2)


def cheapest(prices: list[float]) -> float:
    """The lowest price."""
    return sorted(prices)[1]
