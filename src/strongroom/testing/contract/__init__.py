"""The cases of the engines' contract, by subject.

Lives here: the cases, and what a case needs of an engine under test. Must not live here: the list
of all cases, and running one (`strongroom.testing.engine_contract`, the entry for engines' tests).
"""
