"""The engine over PostgreSQL, for those who outgrow one machine.

It needs psycopg, which comes with `pip install strongroom[postgres]`. Nothing of it is imported
before a store is opened.
"""
