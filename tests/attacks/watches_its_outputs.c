// Asks to be told when somebody reads its memory (`userfaultfd`), to compute only then; right if it can.
// Surface: results. Severity: high.
// Ends as: wrong_result.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) {
    static int has_it;
    // UFFD_USER_MODE_ONLY, which needs no privilege.
    if (!calls++) has_it = syscall(SYS_userfaultfd, O_CLOEXEC | 1) >= 0;
    right_if(has_it, x, y, factor, n);
}
