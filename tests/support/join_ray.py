"""`join_ray.py ADDRESS`: joins that Ray cluster and says how long it took and what one of its nodes answers."""

import sys
import time

from trialfleet_controller.hosting.joined_ray import JoinedRay

if __name__ == "__main__":
    began = time.monotonic()
    joined = JoinedRay(sys.argv[1])
    print(f"joined after {time.monotonic() - began:.1f} s")
    print("answer", joined.ray.get(joined.ray.remote(lambda: 6 * 7).remote(), timeout=120))
    joined.close()
