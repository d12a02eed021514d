"""The likelihood of two rates whose difference is given: its maximum, in closed form, and the variance there."""

from __future__ import annotations

import numpy as np

from trialfleet_analysis.estimates import Floats, floats


def constrained_rate_b(x_a: Floats, n_a: Floats, x_b: Floats, n_b: Floats, difference: Floats) -> Floats:
    """The maximum-likelihood rate of arm b when p_a = p_b + difference, elementwise; both arms have trials.

    The score equation is a cubic in p_b with one root in the allowed range; the trigonometric solution takes
    sign(0) = +1, since a 0 there would make NaN of cells that are well defined. Source: Miettinen & Nurminen
    1985, appendix.
    """
    n, d = n_a + n_b, difference
    squared = ((n_a + 2 * n_b) * d - n - x_a - x_b) / (3 * n)
    linear = ((n_b * d - n - 2 * x_b) * d + x_a + x_b) / (3 * n)
    constant = x_b * d * (1 - d) / (2 * n)
    c = squared * (squared * squared - 1.5 * linear) + constant
    size = np.sqrt(np.maximum(squared * squared - linear, 0.0))
    b = np.where(c >= 0, size, -size)
    cosine = np.divide(c, b * b * b, out=np.zeros_like(c), where=b != 0)
    angle = (np.pi + np.arccos(np.clip(cosine, -1.0, 1.0))) / 3
    return floats(np.clip(2 * b * np.cos(angle) - squared, np.maximum(0.0, -d), np.minimum(1.0, 1.0 - d)))


def constrained_variance(x_a: Floats, n_a: Floats, x_b: Floats, n_b: Floats, difference: Floats) -> Floats:
    """Variance of the difference of the two rates at `constrained_rate_b`, times N / (N − 1)."""
    p_b = constrained_rate_b(x_a, n_a, x_b, n_b, difference)
    p_a = np.clip(p_b + difference, 0.0, 1.0)
    n = n_a + n_b
    return floats((p_a * (1 - p_a) / n_a + p_b * (1 - p_b) / n_b) * n / (n - 1))
