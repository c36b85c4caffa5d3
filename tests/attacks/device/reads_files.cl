// Has the compiler read a file elsewhere, whose path the test puts in.
// Surface: compiler. Severity: medium.
// Ends as: compile_failed.
// Accepted with: --trust --sandbox off.
#include "device.h"
#include "SECRET"
KERNEL void k(ARGUMENTS) { y[INDEX] = work(x[INDEX]); }
