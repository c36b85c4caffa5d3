/* The devices: descriptions, opening, closing, memory usage. */

#include "backend.h"

#include <stdlib.h>
#include <string.h>

const uint64_t space_bytes[SPACES] = {UINT64_C(2) << 30, UINT64_C(1) << 30};

static const rt_MemorySpace spaces[SPACES] = {
    {TEXT("device"), UINT64_C(2) << 30, ALIGNMENT_BYTES, RT_SPACE_KERNEL_VISIBLE},
    {TEXT("pinned"), UINT64_C(1) << 30, ALIGNMENT_BYTES, RT_SPACE_HOST_VISIBLE | RT_SPACE_KERNEL_VISIBLE},
};
static const rt_Str formats[] = {TEXT(FORMAT)};
static const rt_Property properties[] = {{TEXT("simulated"), RT_VALUE_FLAG, 0, {.integer = 1}}};

/* The description that both devices share. */
#define DESCRIPTION                                                                                                    \
    .struct_size = sizeof(rt_DeviceInfo), .kind = RT_KIND_ACCELERATOR, .sub = RT_WHOLE_DEVICE,      \
    .arch = TEXT(NAME), .vendor = TEXT("nobody"), .driver_version = TEXT(VERSION), .dlpack_type = 12,                  \
    .compute_units = 1, .clock_hz = 1000000000,                                                                        \
    .capabilities = RT_CAP_TIMESTAMPS | RT_CAP_WAIT_FOR | RT_CAP_NOOP_KERNEL | RT_CAP_GROUPS | RT_CAP_PEERS |         \
                    RT_CAP_F64,                                                                                        \
    .max_groups = {1 << 20, 1 << 16, 1 << 16}, .max_group_size = {1024, 1024, 64}, .max_group_items = 1024,            \
    .max_shared_bytes = 48 << 10, .max_allocation_bytes = UINT64_C(1) << 30, .spaces = spaces, .space_count = SPACES,  \
    .formats = formats, .format_count = 1, .properties = properties, .property_count = 1

rt_Status list_devices(rt_Handle instance, const rt_DeviceInfo *const **out, size_t *count) {
    static const rt_DeviceInfo usable = {DESCRIPTION, .index = 0, .name = TEXT("C demo"), .uuid = "C demo 0"};
    static const rt_DeviceInfo unusable = {
        DESCRIPTION, .index = 1, .name = TEXT("C demo, taken out"), .uuid = "C demo 1",
        .unavailable_reason = TEXT("it is only listed, as an example of a device that cannot be opened; use " NAME ":0")};
    static const rt_DeviceInfo *const list[] = {&usable, &unusable};
    (void)instance;
    *out = list;
    *count = sizeof list / sizeof *list;
    return NULL;
}

/* Core validates options against the list of `options`; another caller may not. */
static rt_Status read_option(const rt_Property *option, struct device *device) {
    static const char key[] = "out_of_memory_after_bytes";
    int known = option->key.len == sizeof key - 1 && memcmp(option->key.ptr, key, sizeof key - 1) == 0;
    if (!known) {
        return fail(RT_ERROR_INVALID_ARGUMENT, "unknown option \"%.*s\"; there is \"%s\"", (int)option->key.len,
                    (const char *)option->key.ptr, key);
    }
    if (option->kind != RT_VALUE_INTEGER || option->value.integer < 0) {
        return fail(RT_ERROR_INVALID_ARGUMENT, "%s must be an integer of at least 0", key);
    }
    device->limit_bytes = (uint64_t)option->value.integer;
    return NULL;
}

rt_Status open_device(rt_Handle instance, uint32_t index, uint32_t sub, const rt_Property *options, size_t count,
                      rt_Handle *out) {
    (void)instance;
    if (index == 1 && sub == RT_WHOLE_DEVICE) {
        return fail(RT_ERROR_UNAVAILABLE, "it is only listed; use " NAME ":0");
    }
    if (index != 0 || sub != RT_WHOLE_DEVICE) {
        return fail(RT_ERROR_NOT_FOUND, "there is only device 0, without sub-devices");
    }
    struct device *device = calloc(1, sizeof *device);
    if (device == NULL) {
        return fail(RT_ERROR_OUT_OF_MEMORY, "no memory for the device");
    }
    device->opened_ns = now_ns();
    for (size_t i = 0; i < count; i++) {
        rt_Status refused = read_option(&options[i], device);
        if (refused != NULL) {
            free(device);
            return refused;
        }
    }
    *out = device;
    return NULL;
}

static void close_device(rt_Handle device) { free(device); }

static rt_Status memory_usage(rt_Handle handle, uint32_t space, rt_MemoryUsage *out) {
    struct device *device = handle;
    if (space >= SPACES) {
        return fail(RT_ERROR_INVALID_ARGUMENT, "space %u does not exist; valid: 0 to %d", space, SPACES - 1);
    }
    uint64_t used = atomic_load(&device->used_bytes[space]);
    rt_MemoryUsage usage = {.free_bytes = space_bytes[space] - used, .total_bytes = space_bytes[space]};
    write_struct(out, &usage, sizeof usage);
    return NULL;
}

/* All devices are in one process, so each can access the memory of the others. */
static rt_Status peer_access(rt_Handle device, rt_Handle other, uint32_t *out) {
    (void)device, (void)other;
    *out = 1;
    return NULL;
}

/* Telemetry is not supported: the slot is null, and core returns the error. */
const rt_DeviceTable device_table = {
    .struct_size = sizeof(rt_DeviceTable),
    .close = close_device,
    .memory_usage = memory_usage,
    .peer_access = peer_access,
};
