// Computes in its first calls only, as told by a variable of the device.
// Surface: device variables. Severity: high.
// Ends as: wrong_result.
// Accepted with: nothing.
#include "device.h"
VARIABLE u32 calls = 0;
KERNEL void k(ARGUMENTS) {
    if (calls < 5 * N) y[INDEX] = work(x[INDEX]);
    ADD_ONE(calls);
}
