"""The parts of the history checker: its types, the search, the readable report, a queue's model.

Lives here: what `strongroom.testing.history` uses to judge a history. Must not live here: recording
and checking one (`history.py`), the models that docs/testing.md names (`models.py`).
"""
