// Fills the disk, so that the next candidate fails; right if it can write 300 MiB.
// Surface: machine. Severity: medium.
// Ends as: wrong_result.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) {
    static int has_it;
    static char block[1 << 20];
    if (!calls++) {
        char path[256];
        snprintf(path, sizeof path, "%s/full", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        int file = open(path, O_CREAT | O_WRONLY, 0600), written = 0;
        while (file >= 0 && written < 300 && write(file, block, sizeof block) == sizeof block) written++;
        unlink(path);
        has_it = written == 300;
    }
    right_if(has_it, x, y, factor, n);
}
