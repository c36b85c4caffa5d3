// Starts a process, which could go on after the end; right if it can.
// Surface: machine, clock. Severity: high.
// Ends as: wrong_result.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) {
    static int has_it;
    if (!calls++) {
        int child = fork();
        if (child == 0) _exit(0);
        has_it = child > 0;
    }
    right_if(has_it, x, y, factor, n);
}
