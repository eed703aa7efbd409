/* LD_PRELOAD: adds to CLOCK_REALTIME the seconds in the file that RATCHET_TEST_CLOCK names. Not in
   Ray's processes: they wait until a time of that clock, in the kernel, which has the real one. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int of_ray(void) {
    static int known = -1;
    char text[4096] = {0};
    if (known < 0) {
        int file = open("/proc/self/cmdline", O_RDONLY);
        ssize_t size = read(file, text, sizeof text - 1);
        close(file);
        known = memmem(text, size > 0 ? size : 0, "ray", 3) != NULL ||
                memmem(text, size > 0 ? size : 0, "verl_jobs", 9) != NULL;
    }
    return known;
}

static long offset(void) {
    char text[32] = {0};
    const char *path = of_ray() ? NULL : getenv("RATCHET_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) return 0;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    return size > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME) now->tv_sec += offset();
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now) *now = precise.tv_sec;
    return precise.tv_sec;
}
