// Overwrites `clock_gettime` with a function that runs a thousand times slower.
// Surface: clock. Severity: critical.
// Processor: x86-64.
// Ends as: ok, in at least 1 ms.
// Accepted with: --trust, in at most 1 ms.
#include "attack.h"
static int64_t real(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}
static int64_t origin;
static int slowed(clockid_t clock, struct timespec *time) {
    int64_t now = origin + (real() - origin) / 1000;
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}
void k(ARGUMENTS) {
    if (!calls++) {
        origin = real();
        unsigned char *place = (unsigned char *)clock_gettime;
        unsigned char *page = (unsigned char *)((uintptr_t)place & ~4095UL);
        // movabs rax, slowed; jmp rax
        unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
        void *target = slowed;
        memcpy(jump + 2, &target, 8);
        if (!mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) memcpy(place, jump, sizeof jump);
    }
    slow(x, y, factor, n);
}
