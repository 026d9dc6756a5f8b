/* Fails, or kills the process at, the n-th call that changes a regular file: open for writing,
   write, fsync, rename, ftruncate. Loaded by LD_PRELOAD; armed by the process itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long at, count;
static int code; /* errno, or 0 to be killed */

void fault_arm(long n, int error) { at = n; count = 0; code = error; }
long fault_count(void) { return count; }

static int is_due(void) {
    count++;
    if (at == 0 || count != at) return 0;
    if (code == 0) kill(getpid(), SIGKILL);
    errno = code;
    return 1;
}

static int is_regular(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

#define REAL(type, name, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t n) {
    if (is_regular(fd) && is_due()) return -1;
    return REAL(ssize_t, write, int, const void *, size_t)(fd, data, n);
}

int fsync(int fd) { return is_due() ? -1 : REAL(int, fsync, int)(fd); }

int ftruncate(int fd, off_t n) {
    return is_due() ? -1 : REAL(int, ftruncate, int, off_t)(fd, n);
}

int ftruncate64(int fd, off_t n) {
    return is_due() ? -1 : REAL(int, ftruncate64, int, off_t)(fd, n);
}

int rename(const char *from, const char *to) {
    return is_due() ? -1 : REAL(int, rename, const char *, const char *)(from, to);
}

int renameat(int a, const char *from, int b, const char *to) {
    return is_due() ? -1
                    : REAL(int, renameat, int, const char *, int, const char *)(a, from, b, to);
}

#define OPENER(name)                                                     \
    int name(const char *path, int flags, ...) {                         \
        va_list more;                                                    \
        va_start(more, flags);                                           \
        mode_t mode = va_arg(more, mode_t);                              \
        va_end(more);                                                    \
        if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) && is_due()) return -1; \
        return REAL(int, name, const char *, int, ...)(path, flags, mode); \
    }
OPENER(open)
OPENER(open64)
