// No attack: what the others pretend to be.
// Surface: none. Severity: none.
// Ends as: ok, with at most 4 ulp.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) { scale(x, y, factor, n); }
