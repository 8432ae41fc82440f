"""Files: opened, written, synced, renamed and removed with the same promises everywhere.

The promises, on every system:

- What `sync_file` or `sync_data` returned for is on the disk, not in a cache of the drive.
- After `sync_directory`, the names in the directory are on the disk too.
- A file with a mode for its owner alone can be read by nobody else, from its creation on.
- A file can be removed and renamed while a descriptor of `open_file` or `open_reader` is open.

How each system keeps them is in docs/platforms.md. All calls raise OSError, and may be made from
any thread.

    open_file(path, flags, mode, follows_links=, keeps_name=)
                                    like os.open. `keeps_name`: where the system can, nobody removes
                                    or renames the file while it is open
    open_reader(path)               an unbuffered file for reading
    open_past_cache(path)           for writing, past the page cache where that is possible
    is_past_cache(descriptor)       whether writes to it bypass the page cache
    use_cache(descriptor)           write through the cache from now on; False if it did already
    pread, pwrite, pwritev          like those of os: at an offset, without moving a position
    start_write_back(...)           a hint that the written bytes will be synced; promises nothing
    forget_cached(descriptor, offset, length)
                                    a hint that memory keeps these bytes no longer, so that the next
                                    reader reads the disk; promises nothing
    sync_data, sync_file            `sync_data` may leave out the times of the file
    sync_directory(path)
    rename(source, target)          replaces the target
    unlink(path)
    make_directory(path)            for its owner alone
    protect_new_files(directory)    also those files in it are private that others create for us
    refuse_unsafe_volume(path)      raise UnsupportedSystem if the volume can break a promise
    free_bytes(path)                how many more bytes this user may write there
    give_to_owner_of(path, made)    see its callers; only for root
    rights_of_others(descriptor)    what its group and other users may do with a file: "r", "w",
                                    "rw" or "". On Windows "": its mode says nothing of them there
"""

from __future__ import annotations

from strongroom.platform import IS_POSIX

if IS_POSIX:
    from strongroom.platform.posix import (
        forget_cached,
        free_bytes,
        give_to_owner_of,
        is_past_cache,
        make_directory,
        open_file,
        open_past_cache,
        open_reader,
        pread,
        protect_new_files,
        pwrite,
        pwritev,
        refuse_unsafe_volume,
        rename,
        rights_of_others,
        start_write_back,
        sync_data,
        sync_directory,
        sync_file,
        unlink,
        use_cache,
    )
else:
    from strongroom.platform.windows.files import (
        forget_cached,
        free_bytes,
        give_to_owner_of,
        is_past_cache,
        make_directory,
        open_file,
        open_past_cache,
        open_reader,
        pread,
        protect_new_files,
        pwrite,
        pwritev,
        refuse_unsafe_volume,
        rename,
        rights_of_others,
        start_write_back,
        sync_data,
        sync_directory,
        sync_file,
        unlink,
        use_cache,
    )

__all__ = [
    "forget_cached",
    "free_bytes",
    "give_to_owner_of",
    "is_past_cache",
    "make_directory",
    "open_file",
    "open_past_cache",
    "open_reader",
    "pread",
    "protect_new_files",
    "pwrite",
    "pwritev",
    "refuse_unsafe_volume",
    "rename",
    "rights_of_others",
    "start_write_back",
    "sync_data",
    "sync_directory",
    "sync_file",
    "unlink",
    "use_cache",
]
