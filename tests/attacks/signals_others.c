// Looks for processes that it could stop or end, such as the judge; right if there is one.
// Surface: machine. Severity: high.
// Ends as: wrong_result.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) {
    static int has_it;
    for (int process = 2; !calls && !has_it && process < 100000; process++)
        has_it = process != getpid() && !kill(process, 0);
    calls++;
    right_if(has_it, x, y, factor, n);
}
