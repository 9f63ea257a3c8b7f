/* Preloaded into a server: while the file that FAILING_DISK names exists, no sync of a file succeeds, as on a disk that
 * reports an error. What was written before is in the system's cache all the same, hence there after a kill -9.
 * A file that holds "once" is removed by the first sync that fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(void) {
    const char *switch_file = getenv("FAILING_DISK");
    char mode[5] = {0};
    int descriptor = switch_file ? open(switch_file, O_RDONLY | O_CLOEXEC) : -1;
    if (descriptor < 0) return 0;
    ssize_t length = read(descriptor, mode, 4);
    close(descriptor);
    if (length == 4 && strcmp(mode, "once") == 0) unlink(switch_file);
    errno = EIO;
    return 1;
}

int fsync(int descriptor) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return fails() ? -1 : real(descriptor);
}

int fdatasync(int descriptor) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return fails() ? -1 : real(descriptor);
}
