// No attack: what the others that are slow when they compute pretend to be.
// Surface: none. Severity: none.
// Ends as: ok.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) { slow(x, y, factor, n); }
