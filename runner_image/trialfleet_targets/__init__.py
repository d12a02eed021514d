"""Which files of a repository a request is about: predicted from its code and its history, without a model.

Stands on its own: no other package of trialfleet is imported here.
"""
