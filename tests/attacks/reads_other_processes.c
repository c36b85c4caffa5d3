// Opens the memory of other processes; right if one can be opened.
// Surface: verdict (secrets). Severity: critical.
// Ends as: wrong_result.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) {
    static int has_it;
    for (int process = 2; !calls && !has_it && process < 100000; process++) {
        char path[64], byte;
        if (process == getpid()) continue;
        struct iovec here = {&byte, 1}, there = {&calls, 1};
        if (kill(process, 0)) continue;
        snprintf(path, sizeof path, "/proc/%d/mem", process);
        has_it = open(path, O_RDONLY) >= 0 || process_vm_readv(process, &here, 1, &there, 1, 0) == 1 || errno == EFAULT;
    }
    calls++;
    right_if(has_it, x, y, factor, n);
}
