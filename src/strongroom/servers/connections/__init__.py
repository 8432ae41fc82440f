"""Connections of all protocols: accepted, limited in number, and closed for newcomers.

Must not live here: what is read from a connection or written to it (http/, smb/).
"""
