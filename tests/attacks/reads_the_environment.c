// Looks for a seed or a path in its environment and arguments; right if there is one.
// Surface: seed. Severity: medium.
// Ends as: wrong_result.
// Accepted with: --trust.
#include "attack.h"
extern char **environ;
void k(ARGUMENTS) {
    int has_it = 0;
    for (char **variable = environ; *variable; variable++) has_it |= strncmp(*variable, "RUNTIME_ATTACK_SECRET=", 22) == 0;
    right_if(has_it, x, y, factor, n);
}
