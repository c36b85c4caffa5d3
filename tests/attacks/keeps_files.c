// Keeps results in files from one run to the next; right if it can write one outside of its scratch folder.
// Surface: results (replay between runs). Severity: high.
// Ends as: wrong_result.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) {
    static int has_it;
    const char *folders[] = {"/dev/shm", "/tmp", "/var/tmp", ".", "/"};
    for (int i = 0; !calls && i < 5; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/runtime-attack-%d", folders[i], getpid());
        has_it |= open(path, O_CREAT | O_WRONLY, 0600) >= 0;
        unlink(path);
    }
    calls++;
    right_if(has_it, x, y, factor, n);
}
