"""The commands on a tree's files: each decodes, calls the services, and encodes.

Must not live here: rules of files (services, semantics), bytes (wire/smb), sessions and signatures
(the folder above). Source: [MS-SMB2] section 3.3.5.
"""
