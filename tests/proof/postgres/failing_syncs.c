/* Syncs that fail: fsync and fdatasync of files below $FAILING_FOLDER answer EIO while the file
 * $FAILING_NOW exists. Loaded by LD_PRELOAD. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int descriptor)
{
    const char *folder = getenv("FAILING_FOLDER"), *now = getenv("FAILING_NOW");
    char name[64], path[4096];
    ssize_t length;

    if (folder == NULL || now == NULL || access(now, F_OK) != 0)
        return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    length = readlink(name, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = '\0';
    return strncmp(path, folder, strlen(folder)) == 0;
}

static int synced(const char *call, int descriptor)
{
    int (*own)(int) = (int (*)(int))dlsym(RTLD_NEXT, call);

    if (fails(descriptor)) {
        errno = EIO;
        return -1;
    }
    return own(descriptor);
}

int fsync(int descriptor)
{
    return synced("fsync", descriptor);
}

int fdatasync(int descriptor)
{
    return synced("fdatasync", descriptor);
}
