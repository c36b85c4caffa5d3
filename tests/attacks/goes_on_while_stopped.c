// Lets a timer continue the stopped process, and computes while the judge does something else.
// Surface: clock. Severity: critical.
// Ends as: wrong_result.
// Accepted with: --trust.
#include "attack.h"
static float key[4], output[4][1000];
static int next, pending;
static struct work { const float *x; float *y, factor; int64_t n; } work;
static timer_t timer;
static void compute(ARGUMENTS) {
    slow(x, y, factor, n);
    memcpy(output[next], y, 4 * n);
    key[next] = x[7];
    next = (next + 1) % 4;
}
static void go_on(int signal) {
    if (pending) { pending = 0; compute(work.x, work.y, work.factor, work.n); }
}
void k(ARGUMENTS) {
    for (int i = 0; i < 4; i++) if (key[i] == x[7]) { memcpy(y, output[i], 4 * n); return; }
    if (!calls++) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
        signal(SIGCONT, go_on);
        timer_create(CLOCK_MONOTONIC, &event, &timer);
    }
    // The inputs of the spec, and the first others.
    if (calls < 3) { compute(x, y, factor, n); return; }
    work = (struct work){x, y, factor, n};
    pending = 1;
    struct itimerspec time = {{0, 0}, {0, 3000000}};
    timer_settime(timer, 0, &time, 0);
}
