"""How many permutations a metric's tests draw. At looks as many as its decisions were made with."""

AT_LOOKS = 100_000
AT_A_FIXED_END = 50_000
UNDER_LOSS = 20_000
