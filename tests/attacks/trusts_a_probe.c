// Knows inputs again by one element, and copies what it has computed of them before.
// Surface: results (replay). Severity: high.
// Ends as: inconsistent.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) {
    static float probes[512], outputs[512][1000];
    static int next;
    for (int i = 0; i < 512; i++)
        if (probes[i] == x[7]) { memcpy(y, outputs[i], sizeof outputs[i]); return; }
    slow(x, y, factor, n);
    probes[next] = x[7];
    memcpy(outputs[next], y, sizeof outputs[next]);
    next = (next + 1) % 512;
}
