"""SMB's handles: opening, closing, and all operations on a file or directory by a handle.

Lives here: what servers/smb/commands calls, one module for each group of commands. What they have
in common is in operating.py.

| module | operations |
| --- | --- |
| model | the values that commands and services exchange, and `Handle` |
| opening | `connect_share`, `open_node`: every disposition and option |
| snapshots | `tokens`, `access_at`: previous versions |
| closing | `close`, `close_all`: the last close deletes what is pending |
| durable | `disconnect`, `reconnect`, and repeated answers to a CREATE |
| transfers | `read`, `write`, `flush`, `zero_data`, `allocated_ranges` |
| information | `attributes`, `set_basic`, `set_end_of_file`, `set_allocation`, `security` |
| renaming | `set_disposition`, `rename` |
| enumerating | `enumerate_names` |
| locking | `lock`, `unlock` |
| breaking | `acknowledge_oplock`, `acknowledge_lease`, and the time-outs of both |
| listing | List Handles and Force Close Handles over REST |

Every operation may raise StorageError, whose row's `ntstatus` is what SMB answers. An operation of
a handle that is closed, or is closed meanwhile, raises HANDLE_CLOSED.
"""

from __future__ import annotations
