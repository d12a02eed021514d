"""A kubelet without containers: plays thousands of pods on a node that is only an object in the API server.

Everything else is real: API server, scheduler, object store, and the controller that is measured against it.
"""
