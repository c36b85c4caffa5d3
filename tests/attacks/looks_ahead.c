// Computes for both sets of inputs in every call, also in those that are not timed, and copies in the others.
// Surface: results (replay), clock. Severity: critical.
// Ends as: inconsistent.
// Accepted with: --trust.
#include "attack.h"
static float key[2], output[2][1000];
static const float *seen[2];
static void look(int set, float factor, int64_t n) {
    if (!seen[set] || key[set] == seen[set][7]) return;
    slow(seen[set], output[set], factor, n);
    key[set] = seen[set][7];
    usleep(200);
}
void k(ARGUMENTS) {
    int set = seen[0] == x || !seen[0] ? 0 : 1;
    seen[set] = x;
    look(0, factor, n);
    look(1, factor, n);
    memcpy(y, output[set], 4 * n);
}
