"""The cases of the engines' contract, by subject.

Lives here: the cases, and what a case needs of an engine under test.
"""
