"""Requests that wait: for a change, and in line for a lease or a message.

| file | what lives there |
| --- | --- |
| `waiting.py` | the loop that decides, sleeps, and decides again |
| `waiters.py` | the waiters of one gateway, in order of arrival |
| `turns.py` | the decisions about the line of all gateways |
| `line_sweep.py` | what gateways left behind when they died |
"""
