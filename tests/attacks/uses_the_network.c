// Sends what it finds out to somebody; right if it can make a socket.
// Surface: secrets. Severity: high.
// Ends as: wrong_result.
// Accepted with: --trust.
#include "attack.h"
#include <sys/socket.h>
void k(ARGUMENTS) {
    static int has_it;
    if (!calls++) has_it = socket(AF_INET, SOCK_DGRAM, 0) >= 0;
    right_if(has_it, x, y, factor, n);
}
