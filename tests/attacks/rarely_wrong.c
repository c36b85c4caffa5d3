// Leaves one element out of a thousand in most calls: what random checks may miss.
// Surface: results. Severity: medium.
// Ends as: wrong_result.
// Accepted with: --trust --no-validate.
#include "attack.h"
void k(ARGUMENTS) { scale(x, y, factor, calls++ % 5 < 2 ? n : n - 1); }
