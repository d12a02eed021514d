"""The index of one commit: everything that a query reads."""

from trialfleet_targets.index.build import build
from trialfleet_targets.index.cache_store import index_at
from trialfleet_targets.index.model import Index
from trialfleet_targets.index.packing import DamagedIndex

__all__ = ["DamagedIndex", "Index", "build", "index_at"]
