"""The program that runs in the sandbox with the task's interpreter. Standard library only, Python 3.8 or newer.

It must not import trialfleet or a third-party package. `probe.py` and `server.py` also run as standalone scripts.
"""
