"""What Strongroom ships for tests, its own and its users'.

Here live the history checker and its models, and what else a suite needs to drive and judge a
server. Nothing in the server may import this package.
"""
