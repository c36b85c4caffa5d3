// Computes a sixteenth of the elements after two calls.
// Surface: results. Severity: high.
// Ends as: wrong_result.
// Accepted with: --trust --no-validate.
#include "attack.h"
void k(ARGUMENTS) { scale(x, y, factor, calls++ < 2 ? n : n / 16); }
