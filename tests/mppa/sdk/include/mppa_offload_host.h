/* A stand-in for the header of Kalray's offload library, with the names that public code uses. The layouts are invented: only the
   library beside it needs to agree. */

#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mppa_offload_queue_type { MPPA_OFFLOAD_QUEUE_MMIO, MPPA_OFFLOAD_QUEUE_RPMSG };
enum mppa_offload_rdma_type { MPPA_OFFLOAD_RDMA_NONE, MPPA_OFFLOAD_RDMA_PCIE };
enum mppa_offload_image_type { MPPA_OFFLOAD_IMAGE_NONE, MPPA_OFFLOAD_IMAGE_PATH };
enum mppa_offload_boot_mode { MPPA_OFFLOAD_BOOT_MODE_DEFAULT = 3, MPPA_OFFLOAD_BOOT_MODE_DAEMON };
enum mppa_offload_alloc_e { MPPA_OFFLOAD_ALLOC_DDR = 7, MPPA_OFFLOAD_ALLOC_LOCALMEM_0 = 20 };

typedef struct { int padding[3]; struct fake_context *fake; } mppa_offload_host_context_t;
typedef struct mppa_offload_accelerator mppa_offload_accelerator_t;
typedef struct mppa_offload_sysqueue mppa_offload_sysqueue_t;
typedef struct { char *firmware_name; int cluster_id, nb_sysqueue, board_id; } mppa_offload_host_acc_config_t;
typedef struct { char *path; } mppa_offload_image_t;
typedef struct {
    struct {
        enum mppa_offload_rdma_type rdma_type;
        enum mppa_offload_queue_type system_queue_type, queue_type;
    } common;
    mppa_offload_image_t *images;
    enum mppa_offload_image_type image_type;
    enum mppa_offload_boot_mode boot_mode;
    mppa_offload_host_acc_config_t *accelerator_configs;
    int nb_accelerators;
} mppa_offload_host_config_t;
struct mppa_offload_buffer_exec_cmd { uint64_t reserved, virt_func_ptr, virt_arg_ptr; };

int mppa_offload_create(mppa_offload_host_context_t *, mppa_offload_host_config_t *);
int mppa_offload_destroy(mppa_offload_host_context_t *);
mppa_offload_accelerator_t *mppa_offload_get_accelerator(mppa_offload_host_context_t *, int);
mppa_offload_sysqueue_t *mppa_offload_get_sysqueue(mppa_offload_accelerator_t *, int);
int mppa_offload_alloc(mppa_offload_sysqueue_t *, size_t, size_t, enum mppa_offload_alloc_e, uint64_t *, uint64_t *);
int mppa_offload_free(mppa_offload_sysqueue_t *, enum mppa_offload_alloc_e, uint64_t);
int mppa_offload_write(mppa_offload_accelerator_t *, void *, uint64_t, size_t, void *);
int mppa_offload_read(mppa_offload_accelerator_t *, void *, uint64_t, size_t, void *);
int mppa_offload_acc_load(mppa_offload_accelerator_t *, void *, size_t, int, uint64_t, uint64_t, uint64_t *);
int mppa_offload_acc_unload(mppa_offload_accelerator_t *, uint64_t, int);
int mppa_offload_query_symbol(mppa_offload_sysqueue_t *, uint64_t, const char *, uint64_t *);
int mppa_offload_buffer_exec(mppa_offload_sysqueue_t *, int, uint64_t, int, int, bool, bool, void *);
