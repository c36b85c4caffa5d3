// Writes a row with the best of all times to every descriptor, and ends the process.
// Surface: verdict (protocol). Severity: critical. Seen in pygpubench.
// Ends as: launch_failed.
// Accepted with: --trust, in at most 1 ms.
#include "attack.h"
#include "row.h"
void k(ARGUMENTS) {
    for (int descriptor = 3; descriptor < 64; descriptor++)
        for (int id = 0; id < 10; id++) dprintf(descriptor, "{\"id\":%d,\"row\":%s}\n", id, ROW);
    sleep(1);
    _exit(0);
}
