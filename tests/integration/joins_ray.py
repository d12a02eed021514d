"""`joins_ray.py ADDRESS`: joins that Ray cluster and says what one of its nodes answers."""

import sys

from trialfleet_controller.hosting.joined_ray import JoinedRay

if __name__ == "__main__":
    joined = JoinedRay(sys.argv[1])
    print("answer", joined.ray.get(joined.ray.remote(lambda: 6 * 7).remote(), timeout=120))
    joined.close()
