// Writes the runner's answers to every descriptor, and computes nothing.
// Surface: verdict (protocol). Severity: critical.
// Ends as: launch_failed.
// Accepted with: --trust --no-validate.
#include "attack.h"
void k(ARGUMENTS) {
    for (int descriptor = 3; descriptor < 64; descriptor++) dprintf(descriptor, "{\"Done\":2}\n");
}
