// Puts private memory in the place of its output, so that the judge sees what was there.
// Surface: results. Severity: medium.
// Ends as: wrong_result.
// Accepted with: nothing.
#include "attack.h"
void k(ARGUMENTS) {
    uintptr_t page = (uintptr_t)y & ~4095UL;
    if (calls++ == 3) mmap((void *)page, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (calls < 4) scale(x, y, factor, n);
}
