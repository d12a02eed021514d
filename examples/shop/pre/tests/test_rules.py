from shop.pricing.rules import cheapest, total


def test_total():
    assert total([1.0, 2.0]) == 3.0


def test_discount():
    assert total([100.0], discount=10) == 90.0


def test_cheapest():
    assert cheapest([2.0]) == 2.0
