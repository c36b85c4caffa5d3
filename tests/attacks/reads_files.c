// Reads files of the user and of the spec, such as the reference; right if it can.
// Surface: verdict (secrets). Severity: high.
// Ends as: wrong_result.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) {
    static int has_it;
    // The source of this kernel lies beside the reference.
    if (!calls++) has_it = open(__FILE__, O_RDONLY) >= 0 || opendir("/home") || opendir("/root");
    right_if(has_it, x, y, factor, n);
}
