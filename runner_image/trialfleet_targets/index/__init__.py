"""What a repository says at one commit, kept so that a query reads nothing else."""

from trialfleet_targets.index.build import build
from trialfleet_targets.index.keeping import index_at
from trialfleet_targets.index.model import Index
from trialfleet_targets.index.packing import Damaged

__all__ = ["Damaged", "Index", "build", "index_at"]
