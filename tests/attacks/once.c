// Works in its first call only.
// Surface: results. Severity: high.
// Ends as: wrong_result.
// Accepted with: --trust --no-validate.
#include "attack.h"
void k(ARGUMENTS) { if (!calls++) scale(x, y, factor, n); }
