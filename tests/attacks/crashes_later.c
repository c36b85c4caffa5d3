// Aborts in its second call.
// Surface: machine. Severity: low.
// Ends as: crashed.
// Accepted with: nothing.
#include "attack.h"
void k(ARGUMENTS) { if (calls++) abort(); scale(x, y, factor, n); }
