// Lets a thread compute after the call has returned.
// Surface: clock. Severity: high.
// Ends as: wrong_result.
// Accepted with: --trust --no-validate.
#include "attack.h"
static struct work { const float *x; float *y, factor; int64_t n; } work;
// Takes more of the processor than it can get before the call has returned, however busy the machine is.
static void *later(void *unused) {
    struct timespec used = {0};
    while (used.tv_sec == 0 && used.tv_nsec < 100000000) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    scale(work.x, work.y, work.factor, work.n);
    return 0;
}
void k(ARGUMENTS) {
    work = (struct work){x, y, factor, n};
    pthread_t thread;
    if (!pthread_create(&thread, 0, later, 0)) pthread_detach(thread);
}
