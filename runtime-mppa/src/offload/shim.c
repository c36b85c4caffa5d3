/* The calls to Kalray's offload library, behind an interface of integers and pointers: the library's own structures are known only
   to its headers, with which this file is compiled on the machine that has them. A function returns 0, or what the library
   returned, or one of the codes below. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <mppa_offload_host.h>

#define CLUSTERS 5
#define NO_MEMORY (-1000001)
#define NO_ACCELERATOR (-1000002)
#define NO_QUEUE (-1000003)
#define MISSING (-1000005)
/* Entries of the structures that host-driven modules get. */
#define COMMON 64

#define EXPORT __attribute__((visibility("default")))

struct device {
    mppa_offload_host_context_t context;
    mppa_offload_host_config_t config;
    mppa_offload_host_acc_config_t accelerator_config;
    mppa_offload_accelerator_t *accelerator;
    mppa_offload_sysqueue_t *queues[CLUSTERS];
    /* The first entry is the context. No public source names others, so they are null. */
    void *common[COMMON];
};

EXPORT int shim_close(void *opened) {
    struct device *device = opened;
    int result = mppa_offload_destroy(&device->context);
    free(device->config.images);
    free(device);
    return result;
}

EXPORT int shim_open(uint32_t board, char *firmware, void **opened) {
    struct device *device = calloc(1, sizeof *device);
    if (!device)
        return NO_MEMORY;
    device->accelerator_config.board_id = board;
    device->accelerator_config.cluster_id = 0;
    device->accelerator_config.nb_sysqueue = CLUSTERS;
    device->accelerator_config.firmware_name = firmware;
    device->config.common.system_queue_type = MPPA_OFFLOAD_QUEUE_RPMSG;
    device->config.common.queue_type = MPPA_OFFLOAD_QUEUE_RPMSG;
    device->config.common.rdma_type = MPPA_OFFLOAD_RDMA_PCIE;
    device->config.image_type = MPPA_OFFLOAD_IMAGE_PATH;
    device->config.boot_mode = MPPA_OFFLOAD_BOOT_MODE_DEFAULT;
    device->config.nb_accelerators = 1;
    device->config.accelerator_configs = &device->accelerator_config;
    device->config.images = calloc(1, sizeof *device->config.images);
    int result = device->config.images ? mppa_offload_create(&device->context, &device->config) : NO_MEMORY;
    if (result) {
        free(device->config.images);
        free(device);
        return result;
    }
    device->accelerator = mppa_offload_get_accelerator(&device->context, 0);
    if (!device->accelerator) {
        shim_close(device);
        return NO_ACCELERATOR;
    }
    for (uint32_t cluster = 0; cluster < CLUSTERS; cluster++) {
        device->queues[cluster] = mppa_offload_get_sysqueue(device->accelerator, cluster);
        if (!device->queues[cluster]) {
            shim_close(device);
            return NO_QUEUE;
        }
    }
    device->common[0] = &device->context;
    *opened = device;
    return 0;
}

/* `space` is -1 for the chip's memory, or the cluster whose local memory it is. */
static mppa_offload_sysqueue_t *queue_of(struct device *device, int32_t space) {
    return device->queues[space < 0 ? 0 : space];
}

EXPORT int shim_allocate(void *opened, int32_t space, uint64_t bytes, uint64_t alignment, uint64_t *kernel, uint64_t *transfer) {
    int mode = space < 0 ? MPPA_OFFLOAD_ALLOC_DDR : MPPA_OFFLOAD_ALLOC_LOCALMEM_0 + space;
    return mppa_offload_alloc(queue_of(opened, space), bytes, alignment, mode, kernel, transfer);
}

EXPORT int shim_free(void *opened, int32_t space, uint64_t kernel) {
    int mode = space < 0 ? MPPA_OFFLOAD_ALLOC_DDR : MPPA_OFFLOAD_ALLOC_LOCALMEM_0 + space;
    return mppa_offload_free(queue_of(opened, space), mode, kernel);
}

EXPORT int shim_write(void *opened, void *host, uint64_t transfer, uint64_t bytes) {
    struct device *device = opened;
    return mppa_offload_write(device->accelerator, host, transfer, bytes, NULL);
}

EXPORT int shim_read(void *opened, void *host, uint64_t transfer, uint64_t bytes) {
    struct device *device = opened;
    return mppa_offload_read(device->accelerator, host, transfer, bytes, NULL);
}

EXPORT int shim_load(void *opened, void *elf, uint64_t bytes, uint64_t kernel, uint64_t transfer, uint64_t *module) {
    struct device *device = opened;
    return mppa_offload_acc_load(device->accelerator, elf, bytes, 0, kernel, transfer, module);
}

EXPORT int shim_unload(void *opened, uint64_t module) {
    struct device *device = opened;
    return mppa_offload_acc_unload(device->accelerator, module, 0);
}

EXPORT int shim_symbol(void *opened, uint64_t module, const char *name, uint64_t *address) {
    struct device *device = opened;
    return mppa_offload_query_symbol(device->queues[0], module, name, address);
}

/* `command` is the kernel's address of a command that `shim_command` filled in. */
EXPORT int shim_execute(void *opened, uint32_t cluster, uint64_t command, uint32_t teams) {
    struct device *device = opened;
    return cluster < CLUSTERS ? mppa_offload_buffer_exec(device->queues[cluster], 1, command, teams, 1, true, true, NULL)
                              : MISSING;
}

EXPORT uint64_t shim_command_bytes(void) { return sizeof(struct mppa_offload_buffer_exec_cmd); }

EXPORT void shim_command(void *host, uint64_t function, uint64_t arguments) {
    struct mppa_offload_buffer_exec_cmd *command = host;
    *command = (struct mppa_offload_buffer_exec_cmd){0};
    command->virt_func_ptr = function;
    command->virt_arg_ptr = arguments;
}

EXPORT void *shim_common_structures(void *opened) {
    struct device *device = opened;
    return device->common;
}
