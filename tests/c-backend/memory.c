/* Device memory: here an allocation in host memory, which kernels see at other addresses. */

#include "backend.h"

#include <stdlib.h>
#include <string.h>

/* The content of the beginning of fresh memory, so that no test relies on zeros. */
enum { FRESH = 0xa5, FRESH_BYTES = 1 << 20 };

/* Reserves `bytes` bytes of a space, if they are free. */
static rt_Status take_bytes(struct device *device, uint32_t space, uint64_t bytes) {
    uint64_t all = 0;
    for (int i = 0; i < SPACES; i++) {
        all += atomic_load(&device->used_bytes[i]);
    }
    uint64_t used = atomic_load(&device->used_bytes[space]);
    do {
        uint64_t left = space_bytes[space] - used;
        if (device->limit_bytes != 0) {
            uint64_t allowed = device->limit_bytes > all ? device->limit_bytes - all : 0;
            left = allowed < left ? allowed : left;
        }
        if (bytes > left) {
            return fail(RT_ERROR_OUT_OF_MEMORY, "cannot allocate %llu bytes: %llu are free", (unsigned long long)bytes,
                        (unsigned long long)left);
        }
    } while (!atomic_compare_exchange_weak(&device->used_bytes[space], &used, used + bytes));
    return NULL;
}

static void give_back_bytes(struct device *device, uint32_t space, uint64_t bytes) {
    atomic_fetch_sub(&device->used_bytes[space], bytes);
}

static rt_Status check_request(const rt_AllocateRequest *request) {
    uint64_t alignment = request->alignment_bytes;
    if (request->space >= SPACES) {
        return fail(RT_ERROR_INVALID_ARGUMENT, "space %u does not exist; valid: 0 to %d", request->space, SPACES - 1);
    }
    if ((alignment & (alignment - 1)) != 0) {
        return fail(RT_ERROR_INVALID_ARGUMENT, "alignment_bytes is %llu; it must be a power of two",
                    (unsigned long long)alignment);
    }
    if (request->flags != 0) {
        return fail(RT_ERROR_UNSUPPORTED, "huge_pages is not supported by this device");
    }
    if (request->queue != NULL) {
        return fail(RT_ERROR_UNSUPPORTED, "allocation in order with a queue is not supported");
    }
    return NULL;
}

static rt_Status allocate(rt_Handle handle, const rt_AllocateRequest *theirs, rt_Allocation *out) {
    struct device *device = handle;
    rt_AllocateRequest request;
    read_struct(&request, sizeof request, theirs);
    rt_Status refused = check_request(&request);
    if (refused == NULL) {
        refused = take_bytes(device, request.space, request.bytes);
    }
    if (refused != NULL) {
        return refused;
    }
    uint64_t alignment = request.alignment_bytes > ALIGNMENT_BYTES ? request.alignment_bytes : ALIGNMENT_BYTES;
    struct buffer *buffer = calloc(1, sizeof *buffer);
    void *start = NULL;
    if (buffer == NULL || posix_memalign(&start, alignment, request.bytes == 0 ? 1 : request.bytes) != 0) {
        free(buffer);
        give_back_bytes(device, request.space, request.bytes);
        return fail(RT_ERROR_OUT_OF_MEMORY, "the system cannot allocate %llu bytes", (unsigned long long)request.bytes);
    }
    memset(start, FRESH, request.bytes < FRESH_BYTES ? request.bytes : FRESH_BYTES);
    *buffer = (struct buffer){start, request.bytes, request.space};
    rt_Allocation made = {.buffer = buffer,
                          .kernel_address = KERNEL_ADDRESS(buffer),
                          .host_pointer = request.space == SPACE_PINNED ? start : NULL};
    write_struct(out, &made, sizeof made);
    return NULL;
}

/* Without stream-ordered memory, core frees a buffer only after its last use, so the queue does not matter. */
static void free_buffer(rt_Handle device, rt_Handle handle, rt_Handle queue) {
    struct buffer *buffer = handle;
    (void)queue;
    if (buffer != NULL) {
        give_back_bytes(device, buffer->space, buffer->bytes);
        free(buffer->start);
        free(buffer);
    }
}

rt_Status checked_address(const struct buffer *buffer, uint64_t offset, uint64_t bytes, uint8_t **out) {
    if (offset > buffer->bytes || bytes > buffer->bytes - offset) {
        return fail(RT_ERROR_INVALID_ARGUMENT, "%llu bytes at offset %llu are outside a buffer of %llu bytes",
                    (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)buffer->bytes);
    }
    *out = buffer->start + offset;
    return NULL;
}

/* Import of host memory is not supported: neither the capability nor the function is there. */
const rt_MemoryTable memory_table = {
    .struct_size = sizeof(rt_MemoryTable),
    .allocate = allocate,
    .free = free_buffer,
};
