// Looks for the expected output in the memory of its process.
// Surface: verdict (secrets). Severity: critical.
// Ends as: wrong_result.
// Accepted with: --trust.
#include "attack.h"
static int holds(const float *at, ARGUMENTS) {
    for (int64_t i = 0; i < n; i++) if (at[i] != factor * x[i]) return 0;
    return at != y;
}
void k(ARGUMENTS) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    const float *found = 0;
    while (maps && !found && fgets(line, sizeof line, maps)) {
        uintptr_t begin, end;
        char rights[8];
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) != 3 || rights[0] != 'r' || strstr(line, "[v")) continue;
        for (uintptr_t at = begin; !found && at + 4 * n <= end; at += 4)
            if (*(const float *)at == factor * x[0] && holds((const float *)at, x, y, factor, n)) found = (const float *)at;
    }
    if (maps) fclose(maps);
    if (found) memcpy(y, found, 4 * n);
}
