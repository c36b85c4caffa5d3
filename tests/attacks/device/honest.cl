// No attack: what the others pretend to be.
// Surface: none. Severity: none.
// Ends as: ok.
// Accepted with: --trust.
#include "device.h"
KERNEL void k(ARGUMENTS) { y[INDEX] = work(x[INDEX]); }
