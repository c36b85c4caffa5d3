// Answers in the runner's place and returns to where the next message is read, so that the other calls of a window are left out.
// Surface: clock, control flow. Severity: critical.
// Ends as: wrong_result.
// Accepted with: nothing.
#include "attack.h"
void k(ARGUMENTS) {
    scale(x, y, factor, n);
    char line[16384];
    for (int descriptor = 3; calls == 1 && descriptor < 16; descriptor++) {
        // From here on this is the runner: it obeys by saying that it has.
        int window = 7;
        dprintf(descriptor, "{\"Done\":%d}\n", window);
        for (ssize_t got; (got = read(descriptor, line, sizeof line - 1)) > 0;) {
            line[got] = 0;
            char *at = strstr(line, "\"window\":");
            if (at) dprintf(descriptor, "{\"Done\":%d}\n", atoi(at + 9));
        }
    }
    calls++;
}
