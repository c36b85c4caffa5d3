// Ends its process without an error in its second call.
// Surface: verdict. Severity: medium.
// Ends as: exited.
// Accepted with: nothing.
#include "attack.h"
void k(ARGUMENTS) { scale(x, y, factor, n); if (calls++) exit(0); }
