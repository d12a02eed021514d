"""The method `clarte`: edit targets by the published mathematics of Clarté, built from its description.

docs/reference/clarte-method.md has the formulas, the constants, and where the publications disagree.
"""
