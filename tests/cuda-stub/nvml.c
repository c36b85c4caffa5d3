/* An NVIDIA management library for the stub's devices: clocks, temperature, power, energy, reasons for throttling, processes.
 *
 * It fails every call before `nvmlInit_v2`, and reports nothing of MIG instances. With the option nvml_init_aborts=1,
 * `nvmlInit_v2` ends the process. event_reasons=BITS are reported as they are. This process and another one compute on a device,
 * and a third one computes and draws; with other_namespace=1 this process is listed with another ID. */
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_GPU_IS_LOST = 15,
};

struct nvml_device {
    int index, mig;
};
static int initialised;

#define ENTER_INITIALISED                                                                                                          \
    ENTER;                                                                                                                         \
    if (!initialised) return NVML_ERROR_UNINITIALIZED
#define ENTER_DEVICE                                                                                                               \
    ENTER_INITIALISED;                                                                                                             \
    if (device->mig) return NVML_ERROR_NOT_SUPPORTED

int nvmlInit_v2(void) {
    if (option_number("nvml_init_aborts", 0)) abort();
    ENTER;
    initialised = 1;
    return 0;
}
const char *nvmlErrorString(int code) {
    switch (code) {
    case 0: return "Success";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    default: return NULL;
    }
}
/* The UUIDs are those that `cuDeviceGetUuid_v2` returns. */
int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **out) {
    static struct nvml_device devices[8];
    ENTER_INITIALISED;
    int mig = option_number("mig", 0) != 0;
    for (int i = 0; i < 8 && i < option_number("devices", 1); i++) {
        char name[48];
        int x = (mig ? 0x60 : 0x40) + i;
        snprintf(name, sizeof name, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", mig ? "MIG" : "GPU", x, x,
                 x, x, x, x, x, x, x, x, x, x, x, x, x, x);
        if (strcmp(uuid, name) != 0) continue;
        devices[i] = (struct nvml_device){i, mig};
        *out = &devices[i];
        return 0;
    }
    return NVML_ERROR_NOT_FOUND;
}
int nvmlDeviceGetClockInfo(struct nvml_device *device, int domain, unsigned *mhz) {
    ENTER_DEVICE;
    if (domain != 1 && domain != 2) return NVML_ERROR_INVALID_ARGUMENT;
    *mhz = domain == 1 ? 1410 : 2619;
    return 0;
}
int nvmlDeviceGetTemperature(struct nvml_device *device, int sensor, unsigned *celsius) {
    ENTER_DEVICE;
    if (sensor != 0) return NVML_ERROR_INVALID_ARGUMENT;
    *celsius = 32 + (unsigned)device->index;
    return 0;
}
int nvmlDeviceGetPowerUsage(struct nvml_device *device, unsigned *milliwatts) {
    ENTER_DEVICE;
    *milliwatts = 70795;
    return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, unsigned long long *millijoules) {
    ENTER_DEVICE;
    *millijoules = 2184220;
    return 0;
}
int nvmlDeviceGetCurrentClocksEventReasons(struct nvml_device *device, unsigned long long *reasons) {
    ENTER_DEVICE;
    *reasons = (unsigned long long)option_number("event_reasons", 0);
    return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *device, unsigned long long *reasons) {
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}
struct process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};
static int list(unsigned *count, struct process *out, const unsigned *pids, unsigned pid_count) {
    unsigned room = *count;
    *count = pid_count;
    if (room < pid_count) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < pid_count; i++) out[i] = (struct process){pids[i], 1 << 20, ~0u, ~0u};
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, unsigned *count, struct process *out) {
    ENTER_DEVICE;
    unsigned own = (unsigned)getpid() + (option_number("other_namespace", 0) ? 1u << 30 : 0);
    return list(count, out, (unsigned[]){4000001, own, 4000002}, 3);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(struct nvml_device *device, unsigned *count, struct process *out) {
    ENTER_DEVICE;
    return list(count, out, (unsigned[]){4000002}, 1);
}
