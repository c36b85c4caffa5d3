// Stops its process in its second call, which the judge does between windows.
// Surface: clock. Severity: medium.
// Ends as: timeout.
// Accepted with: nothing.
#include "attack.h"
void k(ARGUMENTS) { scale(x, y, factor, n); if (calls++) raise(SIGSTOP); }
