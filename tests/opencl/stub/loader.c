/* A stub of the OpenCL loader. It forwards every call to the system's loader, except for the faults that STUB_OPENCL injects. Its
   directives, separated by commas:

   fail=FUNCTION:CODE:COUNT    the COUNTth call (0: every call) fails with CODE and does nothing
   event=FUNCTION:CODE:COUNT   the command that the COUNTth call enqueues ends with status CODE
   kernel=CODE                 kernels named `fail` end with status CODE; code is built with SUITE_CAN_FAIL defined
   count=FUNCTION:NUMBER       reports NUMBER platforms or devices
   garbage=FUNCTION            the answer of this query is all ones
   nothing=FUNCTION            the answer of this query is empty
   never                       no command ever completes
   old                         devices report OpenCL 1.2
   nvidia                      platforms report NVIDIA's name; there, a failure ends everything behind it
   waits                       releasing memory or a program waits for all queues, with a lock held that launches take, as on NVIDIA
   grids                       as PoCL before 6.0, it aborts if launches of one kernel on two queues overlap that have the same group
                               size and different numbers of groups, or if the binary of a program is read while its kernel runs

   All OpenCL functions have at most 14 parameters, all integers or pointers, so one trampoline forwards any of them. */
#define _GNU_SOURCE
#include "functions.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef intptr_t word;
typedef word (*any)(word, word, word, word, word, word, word, word, word, word, word, word, word, word);

struct entry {
    const char *name;
    int error, event;
    _Atomic(any) real;
    atomic_int calls;
};

enum { EXECUTION_STATUS = 0x11D3, DEVICE_VERSION = 0x102F, PLATFORM_NAME = 0x0902, SUBMITTED = 2, INVALID_OPERATION = -59, EVENTS_FAILED = -14 };

static any find(const char *name) {
    static _Atomic(void *) library;
    if (!library) library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? (any)(uintptr_t)dlsym(library, name) : NULL;
}

/* The NUMBER of a directive `KIND=FUNCTION:NUMBER:COUNT` for this call; 0 without such a directive, 1 without a number. */
static int directive(const char *kind, const struct entry *entry, int call) {
    const char *words = getenv("STUB_OPENCL");
    char start[128];
    int length = snprintf(start, sizeof start, "%s=%s", kind, entry->name);
    for (const char *at = words ? strstr(words, start) : NULL; at; at = strstr(at + 1, start)) {
        if (at[length] == ',' || !at[length]) return 1;
        if (at[length] != ':') continue;
        char *end;
        long number = strtol(at + length + 1, &end, 10), count = *end == ':' ? strtol(end + 1, NULL, 10) : 0;
        if (count == 0 || count == call) return (int)number;
    }
    return 0;
}

static int has_directive(const char *text) {
    const char *words = getenv("STUB_OPENCL");
    return words && strstr(words, text) != NULL;
}

/* Failed commands. Their events are retained, so that no other event gets the same address. */
enum { FAILURES = 4096 };
static struct {
    _Atomic(word) event;
    int status;
} failed[FAILURES];
static atomic_int failures;

static int status_of(word event) {
    for (int at = 0; at < FAILURES && at < failures; at++)
        if (failed[at].event == event) return failed[at].status;
    return 0;
}

static void fail(word event, int status) {
    int at = failures++;
    if (at >= FAILURES) return;
    find("clRetainEvent")(event, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    failed[at].status = status;
    failed[at].event = event;
}

/* Corrupts the answer of a query. The first parameter is the object; some queries have a second one. */
static void corrupt_answer(const struct entry *entry, const word *a) {
    int second = strstr(entry->name, "ArgInfo") || strstr(entry->name, "WorkGroupInfo") || strstr(entry->name, "BuildInfo");
    size_t size = (size_t)a[2 + second], *returned_size = (size_t *)a[4 + second];
    void *value = (void *)a[3 + second];
    /* Handles are left alone: the system's loader dereferences them. */
    int is_handle = a[1 + second] == 0x1031 || a[1 + second] == 0x1042;
    if (directive("garbage", entry, 0) && value && !is_handle) memset(value, 0xff, size);
    if (directive("nothing", entry, 0)) {
        if (value) memset(value, 0, size);
        if (returned_size) *returned_size = 0;
    }
}

/* "OpenCL 3.0 …" */
static void report_version_1_2(const word *a) {
    char *text = (char *)a[3];
    if (a[1] != DEVICE_VERSION || !text || a[2] < 11) return;
    text[7] = '1';
    text[9] = '2';
}

static void rename_platform(const word *a) {
    char *text = (char *)a[3];
    if (a[1] == PLATFORM_NAME && text) strncpy(text, "NVIDIA CUDA", (size_t)a[2]);
}

static void override_status(const word *a, word *answer) {
    if (a[1] != EXECUTION_STATUS || !a[3] || *answer) return;
    if (has_directive("never")) *(int *)a[3] = SUBMITTED;
    /* Only after it has ended: until then its memory is in use. */
    int ended = status_of(a[0]);
    if (ended && *(int *)a[3] == 0) *(int *)a[3] = ended;
}

static void override_wait(const word *a, word *answer) {
    for (word at = 0; at < a[0]; at++)
        if (status_of(((const word *)a[1])[at])) *answer = EVENTS_FAILED;
}

static int is(const struct entry *entry, const char *name) { return strcmp(entry->name, name) == 0; }

/* The status with which kernels named `fail` end; 0 without such a directive. */
static int kernel_status(void) {
    const char *words = getenv("STUB_OPENCL"), *value = words ? strstr(words, "kernel=") : NULL;
    return value ? (int)strtol(value + strlen("kernel="), NULL, 10) : 0;
}

/* Whether a kernel is named `fail`. */
static int is_named_fail(word kernel) {
    enum { FUNCTION_NAME = 0x1190 };
    char name[16] = "";
    find("clGetKernelInfo")(kernel, FUNCTION_NAME, sizeof name, (word)name, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return strcmp(name, "fail") == 0;
}

/* Build options with the macro that enables the suite's kernel `fail`. */
static word options_with_fail(word given, char *buffer, size_t size) {
    snprintf(buffer, size, "%s -DSUITE_CAN_FAIL", given ? (const char *)given : "");
    return (word)buffer;
}

/* Overrides the number of platforms or devices. */
static void override_count(const struct entry *entry, unsigned *count) {
    char start[64];
    snprintf(start, sizeof start, "count=%s:", entry->name);
    if (has_directive(start) && count) *count = (unsigned)strtoul(strstr(getenv("STUB_OPENCL"), start) + strlen(start), NULL, 10);
}

static void apply_directives(const struct entry *entry, int call, const word *a, word *answer) {
    int number = directive("event", entry, call);
    if (kernel_status() && is(entry, "clEnqueueNDRangeKernel") && is_named_fail(a[1])) number = kernel_status();
    if (number && entry->event >= 0 && *answer == 0 && a[entry->event]) fail(*(word *)a[entry->event], number);
    if (is(entry, "clGetEventInfo")) override_status(a, answer);
    if (is(entry, "clWaitForEvents")) override_wait(a, answer);
    if (is(entry, "clGetPlatformIDs")) override_count(entry, (unsigned *)a[2]);
    if (is(entry, "clGetDeviceIDs")) override_count(entry, (unsigned *)a[4]);
    if (is(entry, "clGetDeviceInfo") && has_directive("old")) report_version_1_2(a);
    if (is(entry, "clGetPlatformInfo") && has_directive("nvidia")) rename_platform(a);
    if (strncmp(entry->name, "clGet", 5) == 0 && strstr(entry->name, "Info")) corrupt_answer(entry, a);
}

/* Functions that return a pointer without `errcode_ret`. */
static int returns_pointer(const struct entry *entry) { return is(entry, "clSVMAlloc") || strstr(entry->name, "Address"); }

static word refuse(const struct entry *entry, const word *a, int code) {
    if (returns_pointer(entry)) return 0;
    if (entry->error < 0) return code;
    if (a[entry->error]) *(int *)a[entry->error] = code;
    return 0;
}

/* The open queues, for which a release waits. */
static struct {
    pthread_mutex_t lock;
    word open[256];
    int count;
} queues = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Finishes every queue while holding the driver's lock. */
static void wait_for_queues(const struct entry *entry, const word *a) {
    int is_close = is(entry, "clReleaseCommandQueue"), is_launch = strncmp(entry->name, "clEnqueue", 9) == 0;
    int waits = is(entry, "clReleaseMemObject") || is(entry, "clReleaseProgram") || is(entry, "clSVMFree");
    if (!is_close && !is_launch && !waits) return;
    pthread_mutex_lock(&queues.lock);
    for (int at = 0; at < queues.count; at++) {
        if (waits) find("clFinish")(queues.open[at], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        if (is_close && queues.open[at] == a[0]) queues.open[at] = queues.open[--queues.count];
    }
    pthread_mutex_unlock(&queues.lock);
}

static void note_queue(const struct entry *entry, word queue) {
    if (strncmp(entry->name, "clCreateCommandQueue", 20) != 0 || !queue) return;
    pthread_mutex_lock(&queues.lock);
    if (queues.count < 256) queues.open[queues.count++] = queue;
    pthread_mutex_unlock(&queues.lock);
}

/* The launches in flight, for `grids`. Those behind a user event have not begun. */
struct launch {
    word queue, event, gate;
    size_t global[3], local[3];
    char kernel[64];
};
static struct {
    pthread_mutex_t lock;
    struct launch all[1024];
    int count;
} launches = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum { PROGRAM_BINARIES = 0x1166, PROGRAM_KERNEL_NAMES = 0x1168, KERNEL_FUNCTION_NAME = 0x1190 };

static int event_number(word event, word key) {
    int number = 0;
    find("clGetEventInfo")(event, key, sizeof number, (word)&number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return number;
}

static int is_held(const struct launch *launch) { return launch->gate && event_number(launch->gate, EXECUTION_STATUS) > 0; }

static int is_pending(const struct launch *launch) { return event_number(launch->event, EXECUTION_STATUS) > 0; }

static int is_running(const struct launch *launch) { return !is_held(launch) && is_pending(launch); }

/* The user event that the commands of a queue wait for; 0 if there is none. */
static struct {
    word queue, event;
} gates[256];
static int gate_count;

static word gate_of(word queue) {
    for (int at = gate_count - 1; at >= 0; at--)
        if (gates[at].queue == queue) return gates[at].event;
    return 0;
}

static void note_gate(const word *a) {
    enum { COMMAND_TYPE = 0x11D1, COMMAND_USER = 0x1204 };
    for (word at = 0; at < a[1] && gate_count < 256; at++) {
        word event = ((const word *)a[2])[at];
        if (event_number(event, COMMAND_TYPE) != COMMAND_USER) continue;
        find("clRetainEvent")(event, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        gates[gate_count].queue = a[0];
        gates[gate_count++].event = event;
    }
}

static struct launch launch_of(const word *a) {
    struct launch launch = {.queue = a[0], .gate = gate_of(a[0])};
    for (word axis = 0; axis < 3; axis++) {
        launch.global[axis] = axis < a[2] ? ((const size_t *)a[4])[axis] : 1;
        launch.local[axis] = axis < a[2] && a[5] ? ((const size_t *)a[5])[axis] : 1;
    }
    find("clGetKernelInfo")(a[1], KERNEL_FUNCTION_NAME, sizeof launch.kernel - 1, (word)launch.kernel, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return launch;
}

static void abort_on_overlap(const struct launch *new) {
    for (int at = 0; at < launches.count; at++) {
        const struct launch *old = &launches.all[at];
        int is_same = !strcmp(old->kernel, new->kernel) && !memcmp(old->local, new->local, sizeof new->local);
        if (is_same && old->queue != new->queue && memcmp(old->global, new->global, sizeof new->global) && is_running(old)) abort();
    }
}

static void abort_on_read(word program) {
    char names[256] = "";
    find("clGetProgramInfo")(program, PROGRAM_KERNEL_NAMES, sizeof names - 1, (word)names, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    pthread_mutex_lock(&launches.lock);
    for (int at = 0; at < launches.count; at++)
        if (strstr(names, launches.all[at].kernel) && is_running(&launches.all[at])) abort();
    pthread_mutex_unlock(&launches.lock);
}

/* Calls the function, and aborts where PoCL may. */
static word call_with_grids(const struct entry *entry, any real, const word *a) {
    int is_launch = is(entry, "clEnqueueNDRangeKernel") && a[8];
    if (is(entry, "clGetProgramInfo") && a[1] == PROGRAM_BINARIES && a[3]) abort_on_read(a[0]);
    struct launch new = {0};
    pthread_mutex_lock(&launches.lock);
    if (is(entry, "clEnqueueBarrierWithWaitList")) note_gate(a);
    for (int at = 0; at < launches.count && is(entry, "clSetUserEventStatus"); at++)
        if (launches.all[at].gate == a[0]) abort_on_overlap(&launches.all[at]);
    if (is_launch) {
        new = launch_of(a);
        if (!is_held(&new)) abort_on_overlap(&new);
    }
    if (!is_launch) pthread_mutex_unlock(&launches.lock);
    word answer = real(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13]);
    if (!is_launch) return answer;
    int at = 0;
    while (at < launches.count && is_pending(&launches.all[at])) at++;
    if (!(int)answer && at < 1024) {
        new.event = *(word *)a[8];
        find("clRetainEvent")(new.event, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        if (at == launches.count) launches.count++;
        else find("clReleaseEvent")(launches.all[at].event, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        launches.all[at] = new;
    }
    pthread_mutex_unlock(&launches.lock);
    return answer;
}

/* The programs and kernels that are alive. */
static atomic_int live_objects;

static void count_objects(const struct entry *entry, word answer) {
    int is_new = (strncmp(entry->name, "clCreateProgram", 15) == 0 || is(entry, "clCreateKernel")) && answer;
    int is_retained = (is(entry, "clRetainProgram") || is(entry, "clRetainKernel")) && !answer;
    int is_released = (is(entry, "clReleaseProgram") || is(entry, "clReleaseKernel")) && !answer;
    live_objects += is_new + is_retained - is_released;
}

/* For tests. */
__attribute__((visibility("default"))) int stub_live_objects(void);
int stub_live_objects(void) { return live_objects; }

static word call(struct entry *entry, word *a) {
    char options[4096];
    if (kernel_status() && is(entry, "clBuildProgram")) a[3] = options_with_fail(a[3], options, sizeof options);
    int count = ++entry->calls, code = directive("fail", entry, count);
    /* Command buffers would run kernels unseen by the stub. */
    if (kernel_status() && is(entry, "clGetExtensionFunctionAddressForPlatform") && strstr((const char *)a[1], "CommandBuffer"))
        return 0;
    if (code) return refuse(entry, a, code);
    if (!entry->real) entry->real = find(entry->name);
    if (!entry->real) return refuse(entry, a, INVALID_OPERATION);
    while (has_directive("never") && (is(entry, "clFinish") || is(entry, "clWaitForEvents"))) sleep(1);
    if (has_directive("waits")) wait_for_queues(entry, a);
    word answer = has_directive("grids")
                      ? call_with_grids(entry, entry->real, a)
                      : entry->real(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13]);
    /* Error codes have 32 bits. */
    if (entry->error < 0 && !returns_pointer(entry)) answer = (int)answer;
    apply_directives(entry, count, a, &answer);
    note_queue(entry, answer);
    count_objects(entry, answer);
    return answer;
}

#define DEFINE(NAME, ERROR, EVENT)                                                                                                \
    __attribute__((visibility("default"))) word NAME(word a, word b, word c, word d, word e, word f, word g, word h, word i,      \
                                                     word j, word k, word l, word m, word n);                                     \
    word NAME(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l, word m, word n) {   \
        static struct entry entry = {.name = #NAME, .error = ERROR, .event = EVENT};                                              \
        word all[] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n};                                                                  \
        return call(&entry, all);                                                                                                 \
    }
FUNCTIONS(DEFINE)
