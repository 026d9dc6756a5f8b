/* A clock that jumps: loaded by LD_PRELOAD, it puts the time of day off by up to a year, and by
   another time every second. The clock that only counts seconds is left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next) next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int code = next(clock, now);
    if (code == 0 && clock == CLOCK_REALTIME) {
        unsigned long mixed = (unsigned long)now->tv_sec * 0x9E3779B97F4A7C15ul;
        now->tv_sec += (long)(mixed >> 39) - (1l << 24);
    }
    return code;
}
