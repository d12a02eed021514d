"""Sandboxes for untrusted programs."""

from trialfleet_runner.sandbox.choose import choose, isolation_report

__all__ = ["choose", "isolation_report"]
