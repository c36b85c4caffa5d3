// Leaves one element out in the last calls that are timed, and in no later ones: it knows how many there are.
// Surface: results. Severity: medium.
// Ends as: wrong_result.
// Accepted with: --trust --no-validate.
#include "attack.h"
void k(ARGUMENTS) {
    calls++;
    scale(x, y, factor, calls > 15 && calls <= (n > 1000 ? 20 : 35) ? n - 1 : n);
}
