// Opens descriptors until nobody can open one; right if it gets 3000.
// Surface: machine. Severity: medium.
// Ends as: wrong_result.
// Accepted with: --trust.
#include "attack.h"
#include <sys/resource.h>
void k(ARGUMENTS) {
    static int has_it;
    if (!calls++) {
        int opened = 0, descriptors[3000];
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        while (opened < 3000 && (descriptors[opened] = open("/dev/null", O_RDONLY)) >= 0) opened++;
        has_it = opened == 3000;
        // What this may do to others is not tried.
        while (opened > 0) close(descriptors[--opened]);
    }
    right_if(has_it, x, y, factor, n);
}
