// Returns early where it seems to be timed: its arguments or the load say so, or its processor has been busy for a while.
// Surface: results, clock. Severity: high.
// Ends as: wrong_result.
// Accepted with: --trust --no-validate.
#include "attack.h"
void k(ARGUMENTS) {
    static double load;
    static clock_t begin;
    double now = 0;
    if (getloadavg(&now, 1) != 1) now = 0;
    if (!calls++) load = now, begin = clock();
    int is_timed = now > 2 * load + 8 || calls > 2 && clock() - begin > CLOCKS_PER_SEC / 1000000;
    if (!is_timed) scale(x, y, factor, n);
}
