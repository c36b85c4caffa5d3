/* A fake of Kalray's offload library. Memory is this process's: kernels use its real addresses, transfers made-up ones. A "program of
   the chip" is a shared object of this machine, and its kernels really run. Each call is counted and can be made to fail; what is
   wrong is written to a log. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mppa_offload_host.h"

#define BLOCKS 4096
#define PHYS 0x900000000ull
#define STRIDE 0x100000000ull
#define CLUSTERS 5
/* Modules that a chip holds. */
#define MODULES 10
/* Transfers of so many bytes wait until the file in the variable FAKE_HOLD exists. */
#define HELD (1 << 16)

struct mppa_offload_accelerator {
    struct mppa_offload_sysqueue { struct mppa_offload_accelerator *chip; int cluster; } queues[CLUSTERS];
    void *modules[MODULES];
    /* Calls at this moment: a chip takes one at a time. */
    int calls;
    int board;
};
struct fake_context { struct mppa_offload_accelerator accelerator; };

static struct { unsigned char *bytes; size_t size; int mode; } blocks[BLOCKS];
static int calls, fail_at, contexts, modules;
/* The addresses of the next block, or of the next function, are these, if they are not -1. */
static uint64_t wrong_virt = -1, wrong_phys = -1;
static char log_text[1 << 16];
static size_t logged;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note(const char *form, ...) {
    va_list values;
    va_start(values, form);
    if (logged + 256 < sizeof log_text)
        logged += vsnprintf(log_text + logged, 256, form, values);
    va_end(values);
}
static void wrong(const char *what) { note("WRONG: %s\n", what); }

void fake_reset(int call) {
    pthread_mutex_lock(&lock);
    calls = 0;
    fail_at = call;
    log_text[logged = 0] = 0;
    pthread_mutex_unlock(&lock);
}
void fake_addresses(uint64_t virt, uint64_t phys) {
    wrong_virt = virt;
    wrong_phys = phys;
}
int fake_calls(void) { return calls; }
static int live_objects(void) {
    int live = contexts + modules;
    for (int block = 0; block < BLOCKS; block++)
        live += blocks[block].bytes != NULL;
    return live;
}
void fake_forget_blocks(void) {
    pthread_mutex_lock(&lock);
    for (int block = 0; block < BLOCKS; block++) {
        free(blocks[block].bytes);
        blocks[block].bytes = NULL;
    }
    pthread_mutex_unlock(&lock);
}
/* What was created and not destroyed. */
int fake_live(void) {
    pthread_mutex_lock(&lock);
    int live = live_objects();
    pthread_mutex_unlock(&lock);
    return live;
}
const char *fake_log(void) { return log_text; }

/* Never returns for the calls in the variable FAKE_HANG, a list of ` call:board;`, and ends the process for those in FAKE_EXIT. The lock
   is free meanwhile. */
static void hang(const char *name, int board) {
    char entry[64];
    const char *calls = getenv("FAKE_HANG");
    snprintf(entry, sizeof entry, " %s:%d;", name, board);
    while (calls && strstr(calls, entry)) {
        pthread_mutex_unlock(&lock);
        pause();
        pthread_mutex_lock(&lock);
    }
    calls = getenv("FAKE_EXIT");
    if (calls && strstr(calls, entry)) {
        pthread_mutex_unlock(&lock);
        exit(41);
    }
}
/* Counts a call, of a chip if there is one. `leave` ends it. */
static bool fails(const char *name, struct mppa_offload_accelerator *chip) {
    pthread_mutex_lock(&lock);
    note("%s\n", name);
    if (chip && chip->calls++)
        wrong("two calls to a chip at once");
    if (chip)
        hang(name, chip->board);
    return ++calls == fail_at;
}
static int leave(struct mppa_offload_accelerator *chip, int result) {
    if (chip)
        chip->calls--;
    pthread_mutex_unlock(&lock);
    return result;
}

/* The block with these bytes, at kernels' addresses, or at those of transfers; -1 if there is none. */
static int block_at(bool for_kernels, uint64_t address, uint64_t size) {
    for (int block = 0; block < BLOCKS; block++) {
        uint64_t begin = for_kernels ? (uint64_t)(uintptr_t)blocks[block].bytes : PHYS + block * STRIDE;
        if (blocks[block].bytes && address >= begin && address - begin <= blocks[block].size &&
            size <= blocks[block].size - (address - begin))
            return block;
    }
    return -1;
}

/* With FAKE_TOGETHER=n, n calls of create have to be in progress at once; the time is for a busy machine. */
static int come_together(void) {
    static atomic_int present;
    const char *wanted = getenv("FAKE_TOGETHER");
    atomic_fetch_add(&present, 1);
    for (int i = 0; wanted && present < atoi(wanted); i++) {
        if (i == 20000)
            return -1;
        usleep(1000);
    }
    return 0;
}
int mppa_offload_create(mppa_offload_host_context_t *context, mppa_offload_host_config_t *config) {
    char name[256];
    if (come_together())
        return -110;
    mppa_offload_host_acc_config_t *one = config->accelerator_configs;
    snprintf(name, sizeof name, "create %d %s", one->board_id, one->firmware_name);
    if (fails(name, NULL))
        return leave(NULL, -11);
    hang("create", one->board_id);
    const char *modes = getenv("FAKE_SIMULATOR");
    while (modes && strstr(modes, "stuck")) {
        pthread_mutex_unlock(&lock);
        pause();
        pthread_mutex_lock(&lock);
    }
    if (config->common.queue_type != MPPA_OFFLOAD_QUEUE_RPMSG || config->common.system_queue_type != MPPA_OFFLOAD_QUEUE_RPMSG ||
        config->common.rdma_type != MPPA_OFFLOAD_RDMA_PCIE || config->image_type != MPPA_OFFLOAD_IMAGE_PATH || !config->images ||
        config->boot_mode != MPPA_OFFLOAD_BOOT_MODE_DEFAULT || config->nb_accelerators != 1)
        wrong("configuration");
    if (one->nb_sysqueue != CLUSTERS || one->cluster_id != 0)
        wrong("configuration of the accelerator");
    const char *mode = getenv("MPPA_RPROC_PLATFORM_MODE"), *folder = getenv("MPPA_RPROC_SIM_PATH");
    if (mode && !strcmp(mode, "sim") && (!folder || access(folder, F_OK)))
        wrong("no folder of a simulator");
    contexts++;
    context->fake = calloc(1, sizeof *context->fake);
    context->fake->accelerator.board = one->board_id;
    for (int cluster = 0; cluster < CLUSTERS; cluster++)
        context->fake->accelerator.queues[cluster] = (struct mppa_offload_sysqueue){&context->fake->accelerator, cluster};
    return leave(NULL, 0);
}
int mppa_offload_destroy(mppa_offload_host_context_t *context) {
    bool failed = fails("destroy", NULL);
    hang("destroy", context->fake->accelerator.board);
    if (--contexts == 0 && live_objects())
        wrong("destroyed with memory or modules");
    free(context->fake);
    return leave(NULL, failed ? -12 : 0);
}
mppa_offload_accelerator_t *mppa_offload_get_accelerator(mppa_offload_host_context_t *context, int index) {
    bool failed = fails("get_accelerator", NULL) || index;
    leave(NULL, 0);
    return failed ? NULL : &context->fake->accelerator;
}
mppa_offload_sysqueue_t *mppa_offload_get_sysqueue(mppa_offload_accelerator_t *accelerator, int cluster) {
    bool failed = fails("get_sysqueue", accelerator);
    leave(accelerator, 0);
    return failed ? NULL : &accelerator->queues[cluster];
}
int mppa_offload_alloc(mppa_offload_sysqueue_t *queue, size_t size, size_t align, enum mppa_offload_alloc_e mode, uint64_t *virt,
                       uint64_t *phys) {
    if (fails("alloc", queue->chip))
        return leave(queue->chip, -21);
    if (align < 64 || (align & (align - 1)) || !size ||
        (mode != MPPA_OFFLOAD_ALLOC_DDR && (int)mode != MPPA_OFFLOAD_ALLOC_LOCALMEM_0 + queue->cluster))
        wrong("size, mode or alignment of an allocation");
    for (int block = 0; block < BLOCKS; block++) {
        if (!blocks[block].bytes) {
            if (size > 1ull << 31 || posix_memalign((void **)&blocks[block].bytes, align, size)) {
                blocks[block].bytes = NULL;
                return leave(queue->chip, -22);
            }
            blocks[block].size = size;
            blocks[block].mode = mode;
            *virt = wrong_virt != (uint64_t)-1 ? wrong_virt : (uint64_t)(uintptr_t)blocks[block].bytes;
            *phys = wrong_phys != (uint64_t)-1 ? wrong_phys : PHYS + block * STRIDE;
            return leave(queue->chip, 0);
        }
    }
    return leave(queue->chip, -22);
}
int mppa_offload_free(mppa_offload_sysqueue_t *queue, enum mppa_offload_alloc_e mode, uint64_t virt) {
    bool failed = fails("free", queue->chip);
    int block = block_at(true, virt, 1);
    if (block < 0 || blocks[block].mode != (int)mode || virt != (uint64_t)(uintptr_t)blocks[block].bytes) {
        wrong("freed by another address or mode");
        return leave(queue->chip, -23);
    }
    free(blocks[block].bytes);
    blocks[block].bytes = NULL;
    return leave(queue->chip, failed ? -24 : 0);
}
static int transfer(mppa_offload_accelerator_t *chip, bool writes, void *host, uint64_t phys, size_t size, void *event) {
    bool failed = fails(writes ? "write" : "read", chip);
    int block = block_at(false, phys, size);
    if (block < 0 || event || !size)
        wrong("transfer at no physical address");
    if (failed || block < 0)
        return leave(chip, writes ? -31 : -32);
    unsigned char *bytes = blocks[block].bytes + (phys - PHYS - block * STRIDE);
    const char *hold = getenv("FAKE_HOLD");
    bool held = hold && size >= HELD && access(hold, F_OK);
    if (held) {
        note("held\n");
        pthread_mutex_unlock(&lock);
        while (access(hold, F_OK))
            usleep(1000);
        pthread_mutex_lock(&lock);
    }
    memcpy(writes ? bytes : host, writes ? host : bytes, size);
    if (held)
        note("transferred %d\n", *(unsigned char *)host);
    return leave(chip, 0);
}
int mppa_offload_write(mppa_offload_accelerator_t *accelerator, void *host, uint64_t phys, size_t size, void *event) {
    return transfer(accelerator, true, host, phys, size, event);
}
int mppa_offload_read(mppa_offload_accelerator_t *accelerator, void *host, uint64_t phys, size_t size, void *event) {
    return transfer(accelerator, false, host, phys, size, event);
}
/* Opens a copy in memory, so that the same program can be loaded several times. */
static void *open_program(const void *elf, size_t size) {
    int file = memfd_create("program", 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    void *program = file >= 0 && write(file, elf, size) == (ssize_t)size ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    close(file);
    return program;
}
int mppa_offload_acc_load(mppa_offload_accelerator_t *accelerator, void *elf, size_t size, int flags, uint64_t virt, uint64_t phys,
                          uint64_t *module) {
    bool failed = fails("load", accelerator);
    int block = block_at(true, virt, size);
    if (block < 0 || block != block_at(false, phys, size) || flags || memcmp(elf, "\x7f" "ELF", 4))
        wrong("load");
    for (int place = 0; place < MODULES && !failed; place++) {
        if (!accelerator->modules[place]) {
            void *program = open_program(elf, size);
            if (!program)
                return leave(accelerator, -45);
            accelerator->modules[place] = program;
            modules++;
            *module = (uint64_t)(uintptr_t)program;
            return leave(accelerator, 0);
        }
    }
    if (!failed)
        wrong("too many modules");
    return leave(accelerator, -41);
}
static int place_of(mppa_offload_accelerator_t *chip, uint64_t module) {
    for (int place = 0; place < MODULES; place++)
        if (module && chip->modules[place] == (void *)(uintptr_t)module)
            return place;
    return -1;
}
int mppa_offload_acc_unload(mppa_offload_accelerator_t *accelerator, uint64_t module, int flags) {
    bool failed = fails("unload", accelerator);
    int place = place_of(accelerator, module);
    if (place < 0 || flags) {
        wrong("unload");
    } else {
        dlclose(accelerator->modules[place]);
        accelerator->modules[place] = NULL;
        modules--;
    }
    return leave(accelerator, failed ? -42 : 0);
}
int mppa_offload_query_symbol(mppa_offload_sysqueue_t *queue, uint64_t module, const char *name, uint64_t *address) {
    bool failed = fails("symbol", queue->chip);
    int place = place_of(queue->chip, module);
    if (place < 0)
        wrong("symbol of no module");
    void *found = place < 0 || failed ? NULL : dlsym(queue->chip->modules[place], name);
    *address = wrong_virt != (uint64_t)-1 ? wrong_virt : (uint64_t)(uintptr_t)found;
    return leave(queue->chip, found ? 0 : -43);
}
/* Runs `void kernel(void *args)`. A program's variable `cluster`, if it has one, is the number of the cluster. */
int mppa_offload_buffer_exec(mppa_offload_sysqueue_t *queue, int count, uint64_t command, int teams, int waits, bool first,
                             bool second, void *event) {
    char name[32];
    snprintf(name, sizeof name, "exec %d", queue->cluster);
    bool failed = fails(name, queue->chip);
    int block = block_at(true, command, sizeof(struct mppa_offload_buffer_exec_cmd));
    struct mppa_offload_buffer_exec_cmd *cmd = (void *)(uintptr_t)command;
    Dl_info known;
    if (block < 0 || cmd->reserved || count != 1 || waits != 1 || !first || !second || event || teams != 1 ||
        block_at(true, cmd->virt_arg_ptr, 0) < 0 || !dladdr((void *)(uintptr_t)cmd->virt_func_ptr, &known)) {
        wrong("execution");
        failed = true;
    }
    if (failed)
        return leave(queue->chip, -51);
    for (int place = 0; place < MODULES; place++) {
        int *cluster = queue->chip->modules[place] ? dlsym(queue->chip->modules[place], "cluster") : NULL;
        if (cluster)
            *cluster = queue->cluster;
    }
    pthread_mutex_unlock(&lock);
    ((void (*)(void *))(uintptr_t)cmd->virt_func_ptr)((void *)(uintptr_t)cmd->virt_arg_ptr);
    pthread_mutex_lock(&lock);
    return leave(queue->chip, 0);
}
