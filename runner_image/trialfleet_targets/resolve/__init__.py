"""From facts of files to edges between them."""

from trialfleet_targets.resolve.barrels import is_barrel
from trialfleet_targets.resolve.edges import edges

__all__ = ["edges", "is_barrel"]
