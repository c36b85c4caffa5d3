// No attack: two threads that wait for work between the calls.
// Surface: none. Severity: none.
// Ends as: ok.
// Accepted with: --trust.
#include "attack.h"
static pthread_barrier_t begin, end;
static struct work { const float *x; float *y, factor; int64_t n; } work;
static void *thread(void *unused) {
    for (;;) {
        pthread_barrier_wait(&begin);
        scale(work.x, work.y, work.factor, work.n / 2);
        pthread_barrier_wait(&end);
    }
}
void k(ARGUMENTS) {
    if (!calls++) {
        pthread_t started;
        pthread_barrier_init(&begin, 0, 2);
        pthread_barrier_init(&end, 0, 2);
        pthread_create(&started, 0, thread, 0);
    }
    work = (struct work){x, y, factor, n};
    pthread_barrier_wait(&begin);
    scale(x + n / 2, y + n / 2, factor, n - n / 2);
    pthread_barrier_wait(&end);
}
