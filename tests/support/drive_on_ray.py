"""`-m tests.support.drive_on_ray ADDRESS FOLDER`: drives a hosted campaign on that Ray, for a test to kill it."""

import sys
from functools import partial
from pathlib import Path

from tests.support.hosted_campaign import Site, plan
from trialfleet_controller.hosting import on_ray
from trialfleet_controller.hosting.joined_ray import JoinedRay

if __name__ == "__main__":
    joined = JoinedRay(sys.argv[1])
    Site(Path(sys.argv[2]), plan()).drive(partial(on_ray.hosted, joined.ray), "sleep=1.5")
    joined.close()
