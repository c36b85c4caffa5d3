/* A fake of Kalray's offload library: one chip, memory in this process at two made-up addresses per block, and one kernel, `double`,
   which doubles the bytes of a block. Each call is counted and can be made to fail; what is wrong is written to a log. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mppa_offload_host.h"

#define BLOCKS 64
#define VIRT 0x100000000ull
#define PHYS 0x900000000ull
#define STRIDE 0x1000000ull

struct mppa_offload_sysqueue { int cluster; };
struct mppa_offload_accelerator { struct mppa_offload_sysqueue queues[5]; };
struct fake_context { struct mppa_offload_accelerator accelerator; };
struct mppa_rproc_iterator { int unused; };

static struct { unsigned char *bytes; size_t size; int mode; } blocks[BLOCKS];
/* Modules that the chip holds, and the handle of the first. */
#define MODULES 10
#define FIRST_MODULE 77
static int loaded[MODULES];
static int calls, fail_at, contexts, iterators;
static char log_text[1 << 16];

void fake_reset(int call) {
    calls = 0;
    fail_at = call;
    log_text[0] = 0;
}
int fake_calls(void) { return calls; }
/* What was created and not destroyed. */
int fake_live(void) {
    int live = contexts + iterators;
    for (int module = 0; module < MODULES; module++)
        live += loaded[module];
    for (int block = 0; block < BLOCKS; block++)
        live += blocks[block].bytes != NULL;
    return live;
}
const char *fake_log(void) { return log_text; }

static int fails(const char *name) {
    size_t used = strlen(log_text);
    snprintf(log_text + used, sizeof log_text - used, "%s\n", name);
    return ++calls == fail_at;
}

static void wrong(const char *what) {
    size_t used = strlen(log_text);
    snprintf(log_text + used, sizeof log_text - used, "WRONG: %s\n", what);
}

/* The bytes at an address of the address space `base`. */
static unsigned char *at(uint64_t base, uint64_t address, size_t size) {
    uint64_t block = (address - base) / STRIDE, offset = (address - base) % STRIDE;
    if (address < base || block >= BLOCKS || !blocks[block].bytes || offset + size > blocks[block].size)
        return NULL;
    return blocks[block].bytes + offset;
}

mppa_rproc_iterator_t *mppa_rproc_iter_alloc(void) {
    if (fails("iter_alloc"))
        return NULL;
    iterators++;
    return calloc(1, sizeof(mppa_rproc_iterator_t));
}
int mppa_rproc_count_get(mppa_rproc_iterator_t *iterator) {
    (void)iterator;
    return fails("count_get") ? -5 : 1;
}
void mppa_rproc_iter_free(mppa_rproc_iterator_t *iterator) {
    iterators--;
    free(iterator);
}
int mppa_offload_create(mppa_offload_host_context_t *context, mppa_offload_host_config_t *config) {
    if (fails("create"))
        return -11;
    mppa_offload_host_acc_config_t *one = config->accelerator_configs;
    if (config->common.queue_type != MPPA_OFFLOAD_QUEUE_RPMSG || config->common.system_queue_type != MPPA_OFFLOAD_QUEUE_RPMSG ||
        config->common.rdma_type != MPPA_OFFLOAD_RDMA_PCIE || config->image_type != MPPA_OFFLOAD_IMAGE_PATH || !config->images ||
        config->boot_mode != MPPA_OFFLOAD_BOOT_MODE_DEFAULT || config->nb_accelerators != 1)
        wrong("configuration");
    if (one->board_id != 2 || one->nb_sysqueue != 5 || one->cluster_id != 0 || strcmp(one->firmware_name, "kalray/fw.elf"))
        wrong("configuration of the accelerator");
    contexts++;
    context->fake = calloc(1, sizeof *context->fake);
    for (int cluster = 0; cluster < 5; cluster++)
        context->fake->accelerator.queues[cluster].cluster = cluster;
    return 0;
}
int mppa_offload_destroy(mppa_offload_host_context_t *context) {
    if (fake_live() != contexts)
        wrong("destroyed with memory or modules");
    contexts--;
    free(context->fake);
    return fails("destroy") ? -12 : 0;
}
mppa_offload_accelerator_t *mppa_offload_get_accelerator(mppa_offload_host_context_t *context, int index) {
    return fails("get_accelerator") || index ? NULL : &context->fake->accelerator;
}
mppa_offload_sysqueue_t *mppa_offload_get_sysqueue(mppa_offload_accelerator_t *accelerator, int cluster) {
    return fails("get_sysqueue") ? NULL : &accelerator->queues[cluster];
}
int mppa_offload_alloc(mppa_offload_sysqueue_t *queue, size_t size, size_t align, enum mppa_offload_alloc_e mode, uint64_t *virt,
                       uint64_t *phys) {
    if (fails("alloc"))
        return -21;
    if (align != 64 || (mode != MPPA_OFFLOAD_ALLOC_DDR && (int)mode != MPPA_OFFLOAD_ALLOC_LOCALMEM_0 + queue->cluster))
        wrong("mode or alignment of an allocation");
    for (uint64_t block = 0; block < BLOCKS; block++) {
        if (!blocks[block].bytes) {
            blocks[block].bytes = calloc(1, size ? size : 1);
            blocks[block].size = size;
            blocks[block].mode = mode;
            *virt = VIRT + block * STRIDE;
            *phys = PHYS + block * STRIDE;
            return 0;
        }
    }
    return -22;
}
int mppa_offload_free(mppa_offload_sysqueue_t *queue, enum mppa_offload_alloc_e mode, uint64_t virt) {
    (void)queue;
    unsigned char *bytes = at(VIRT, virt, 0);
    uint64_t block = (virt - VIRT) / STRIDE;
    if (!bytes || blocks[block].mode != (int)mode) {
        wrong("freed by another address or mode");
        return -23;
    }
    free(blocks[block].bytes);
    blocks[block].bytes = NULL;
    return fails("free") ? -24 : 0;
}
int mppa_offload_write(mppa_offload_accelerator_t *accelerator, void *host, uint64_t phys, size_t size, void *event) {
    (void)accelerator;
    unsigned char *bytes = at(PHYS, phys, size);
    if (!bytes || event)
        wrong("write to no physical address");
    if (fails("write") || !bytes)
        return -31;
    memcpy(bytes, host, size);
    return 0;
}
int mppa_offload_read(mppa_offload_accelerator_t *accelerator, void *host, uint64_t phys, size_t size, void *event) {
    (void)accelerator;
    unsigned char *bytes = at(PHYS, phys, size);
    if (!bytes || event)
        wrong("read from no physical address");
    if (fails("read") || !bytes)
        return -32;
    memcpy(host, bytes, size);
    return 0;
}
static bool is_loaded(uint64_t module) {
    return module >= FIRST_MODULE && module < FIRST_MODULE + MODULES && loaded[module - FIRST_MODULE];
}
int mppa_offload_acc_load(mppa_offload_accelerator_t *accelerator, void *elf, size_t size, int flags, uint64_t virt, uint64_t phys,
                          uint64_t *module) {
    (void)accelerator;
    if (!at(VIRT, virt, size) || !at(PHYS, phys, size) || flags || memcmp(elf, "\x7f" "ELF", 4))
        wrong("load");
    if (fails("load"))
        return -41;
    for (int free = 0; free < MODULES; free++) {
        if (!loaded[free]) {
            loaded[free] = 1;
            *module = FIRST_MODULE + free;
            return 0;
        }
    }
    wrong("too many modules");
    return -44;
}
int mppa_offload_acc_unload(mppa_offload_accelerator_t *accelerator, uint64_t module, int flags) {
    (void)accelerator;
    if (!is_loaded(module) || flags)
        wrong("unload");
    else
        loaded[module - FIRST_MODULE] = 0;
    return fails("unload") ? -42 : 0;
}
int mppa_offload_query_symbol(mppa_offload_sysqueue_t *queue, uint64_t module, const char *name, uint64_t *address) {
    (void)queue;
    if (!is_loaded(module))
        wrong("symbol of no module");
    if (fails("symbol") || strcmp(name, "double"))
        return -43;
    *address = 4242;
    return 0;
}
/* The arguments of `double`: the address of a block, and its size. */
int mppa_offload_buffer_exec(mppa_offload_sysqueue_t *queue, int count, uint64_t command, int teams, int waits, bool first,
                             bool second, void *event) {
    struct mppa_offload_buffer_exec_cmd *cmd = (void *)at(VIRT, command, sizeof *cmd);
    if (!cmd || cmd->virt_func_ptr != 4242 || cmd->reserved || count != 1 || waits != 1 || !first || !second || event ||
        teams != queue->cluster + 1)
        wrong("execution");
    if (fails("exec") || !cmd)
        return -51;
    uint64_t *arguments = (void *)at(VIRT, cmd->virt_arg_ptr, 16);
    unsigned char *bytes = arguments ? at(VIRT, arguments[0], arguments[1]) : NULL;
    if (!bytes) {
        wrong("the kernel's address of an argument");
        return -52;
    }
    for (uint64_t index = 0; index < arguments[1]; index++)
        bytes[index] *= 2;
    return 0;
}
