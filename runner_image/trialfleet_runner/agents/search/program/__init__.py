"""The program that runs inside the sandbox, with the task's interpreter: standard library only, Python ≥ 3.10.

Nothing here may import trialfleet or a third-party package. `probe.py` and `server.py` are also run alone.
"""
