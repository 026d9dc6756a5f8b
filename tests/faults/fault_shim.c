/* Fails, or kills the process at, the n-th call that changes a file or the n-th large allocation;
   or writes down all that changes files. Loaded by LD_PRELOAD; armed by the process itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { LARGE = 4096 };

static long at, count, memory_at, memory_count;
static int code; /* errno, or 0 to be killed */
static int log_to = -1;
static const char *spared, *spared_to; /* a function whose allocations never fail */

void fault_arm(long n, int error) { at = n; count = 0; code = error; }
long fault_count(void) { return count; }
void fault_arm_memory(long n) { memory_at = n; memory_count = 0; }
void fault_spare(const char *from, const char *to) { spared = from; spared_to = to; }
long fault_memory_count(void) { return memory_count; }
void fault_record_to(int fd) { log_to = fd; }

static int is_due(void) {
    count++;
    if (at == 0 || count != at) return 0;
    if (code == 0) kill(getpid(), SIGKILL);
    errno = code;
    return 1;
}

/* An operation: what, the file's number, a place or a length, two names, bytes. */
struct entry { long what, file, place, n_from, n_to, n_bytes; };

static void note(char what, long file, long place, const char *from, const char *to,
                 const void *data, size_t n) {
    if (log_to < 0) return;
    struct entry entry = {what, file, place, from ? strlen(from) : 0, to ? strlen(to) : 0, n};
    syscall(SYS_write, log_to, &entry, sizeof entry);
    if (from) syscall(SYS_write, log_to, from, entry.n_from);
    if (to) syscall(SYS_write, log_to, to, entry.n_to);
    if (n) syscall(SYS_write, log_to, data, n);
}

static long number_of(int fd, off_t *size) {
    struct stat status = {0};
    fstat(fd, &status);
    if (size) *size = status.st_size;
    return status.st_ino;
}

static int is_regular(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

#define REAL(type, name, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t n) {
    if (!is_regular(fd)) return syscall(SYS_write, fd, data, n);
    if (is_due()) return -1;
    off_t size, place = lseek(fd, 0, SEEK_CUR);
    long file = number_of(fd, &size);
    if (fcntl(fd, F_GETFL) & O_APPEND) place = size;
    ssize_t done = syscall(SYS_write, fd, data, n);
    if (done > 0) note('W', file, place, 0, 0, data, done);
    return done;
}

#define WRITER(name)                                                        \
    ssize_t name(int fd, const void *data, size_t n, off_t place) {         \
        if (is_due()) return -1;                                            \
        ssize_t done = syscall(SYS_pwrite64, fd, data, n, place);           \
        if (done > 0) note('W', number_of(fd, 0), place, 0, 0, data, done); \
        return done;                                                        \
    }
WRITER(pwrite)
WRITER(pwrite64)

/* Some libraries rename files by calls of the kernel that are not seen: a sync tells the name. */
static void note_sync(int fd) {
    char link[40], name[4096] = {0};
    if (log_to < 0) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, name, sizeof name - 1) > 0) note('S', number_of(fd, 0), 0, name, 0, 0, 0);
}

#define SYNCER(name)                         \
    int name(int fd) {                       \
        if (is_due()) return -1;             \
        int done = REAL(int, name, int)(fd); \
        if (done == 0) note_sync(fd);        \
        return done;                         \
    }
SYNCER(fsync)
SYNCER(fdatasync)

#define CUTTER(name)                                         \
    int name(int fd, off_t n) {                              \
        if (is_due()) return -1;                             \
        int done = syscall(SYS_ftruncate, fd, n);            \
        if (done == 0) note('T', number_of(fd, 0), n, 0, 0, 0, 0); \
        return done;                                         \
    }
CUTTER(ftruncate)
CUTTER(ftruncate64)

#define PATH_CUTTER(name)                                    \
    int name(const char *path, off_t n) {                    \
        int fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY); \
        if (fd < 0) return -1;                               \
        int done = ftruncate(fd, n);                         \
        close(fd);                                           \
        return done;                                         \
    }
PATH_CUTTER(truncate)
PATH_CUTTER(truncate64)

int rename(const char *from, const char *to) {
    if (is_due()) return -1;
    int done = REAL(int, rename, const char *, const char *)(from, to);
    if (done == 0) note('R', 0, 0, from, to, 0, 0);
    return done;
}

int renameat(int a, const char *from, int b, const char *to) {
    (void)a, (void)b;
    return rename(from, to);
}

int unlink(const char *path) {
    if (is_due()) return -1;
    int done = REAL(int, unlink, const char *)(path);
    if (done == 0) note('U', 0, 0, path, 0, 0, 0);
    return done;
}

int mkdir(const char *path, mode_t mode) {
    if (is_due()) return -1;
    int done = REAL(int, mkdir, const char *, mode_t)(path, mode);
    struct stat status = {0};
    if (done == 0 && stat(path, &status) == 0) note('M', status.st_ino, 0, path, 0, 0, 0);
    return done;
}

static int opened(const char *path, int flags, mode_t mode) {
    if (!(flags & (O_WRONLY | O_RDWR | O_CREAT)))
        return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (is_due()) return -1;
    int is_there = access(path, F_OK) == 0;
    int fd = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && is_regular(fd)) {
        if (!is_there) note('C', number_of(fd, 0), 0, path, 0, 0, 0);
        else if (flags & O_TRUNC) note('T', number_of(fd, 0), 0, 0, 0, 0, 0);
    }
    return fd;
}

#define OPENER(name)                             \
    int name(const char *path, int flags, ...) { \
        va_list more;                            \
        va_start(more, flags);                   \
        mode_t mode = va_arg(more, mode_t);      \
        va_end(more);                            \
        return opened(path, flags, mode);        \
    }
OPENER(open)
OPENER(open64)

/* Allocations of a page or more. glibc's own names, as dlsym allocates. */
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static int is_out(size_t n, const char *caller) {
    if (n < LARGE || memory_at == 0 || (caller >= spared && caller < spared_to)) return 0;
    if (__sync_add_and_fetch(&memory_count, 1) != memory_at) return 0;
    errno = ENOMEM;
    return 1;
}

#define CALLER __builtin_return_address(0)
void *malloc(size_t n) { return is_out(n, CALLER) ? 0 : __libc_malloc(n); }
void *calloc(size_t k, size_t n) { return is_out(k * n, CALLER) ? 0 : __libc_calloc(k, n); }
void *realloc(void *old, size_t n) { return is_out(n, CALLER) ? 0 : __libc_realloc(old, n); }
