// Writes something else as soon as its output was written before.
// Surface: results. Severity: high.
// Ends as: wrong_result.
// Accepted with: nothing.
#include "device.h"
KERNEL void k(ARGUMENTS) { y[INDEX] = is_poison(y[INDEX]) ? work(x[INDEX]) : 7; }
