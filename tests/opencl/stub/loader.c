/* A loader of OpenCL that hands every call on to the system's one, but for what STUB_OPENCL says. Its words, with commas between:

   fail=FUNCTION:CODE:COUNT    the COUNTth call (0: each) answers CODE and does nothing
   event=FUNCTION:CODE:COUNT   the work that the COUNTth call submits ends with the status CODE
   kernel=CODE                 kernels called `fail` end with the status CODE; code is built with SUITE_CAN_FAIL defined
   count=FUNCTION:NUMBER       of platforms or devices it says that there are NUMBER
   garbage=FUNCTION            what it tells of an object is all ones
   nothing=FUNCTION            what it tells of an object is empty
   never                       no work ever ends
   old                         devices say that they are of OpenCL 1.2
   nvidia                      platforms say that they are NVIDIA's, where a failure ends everything behind it
   waits                       releasing memory or a program waits for all queues, holding a lock that launches take: as NVIDIA's does

   All parameters of OpenCL's functions are integers or pointers, at most 14: one trampoline passes any of them on. */
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

/* The number that `KIND=FUNCTION:NUMBER:COUNT` has for this call; 0 when nothing is said of it, 1 when it has no number. */
static int told(const char *kind, const struct entry *entry, int call) {
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

static int is_said(const char *text) {
    const char *words = getenv("STUB_OPENCL");
    return words && strstr(words, text) != NULL;
}

/* Work that has failed. It is kept, so that no other event gets its address. */
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

/* What is told of an object: the parameters before are the object and, for some, a second one. */
static void spoil(const struct entry *entry, const word *a) {
    int second = strstr(entry->name, "ArgInfo") || strstr(entry->name, "WorkGroupInfo") || strstr(entry->name, "BuildInfo");
    size_t size = (size_t)a[2 + second], *told_size = (size_t *)a[4 + second];
    void *value = (void *)a[3 + second];
    /* Handles stay what they are: the system's loader follows them. */
    int is_handle = a[1 + second] == 0x1031 || a[1 + second] == 0x1042;
    if (told("garbage", entry, 0) && value && !is_handle) memset(value, 0xff, size);
    if (told("nothing", entry, 0)) {
        if (value) memset(value, 0, size);
        if (told_size) *told_size = 0;
    }
}

/* "OpenCL 3.0 …" */
static void age(const word *a) {
    char *text = (char *)a[3];
    if (a[1] != DEVICE_VERSION || !text || a[2] < 11) return;
    text[7] = '1';
    text[9] = '2';
}

static void rename_platform(const word *a) {
    char *text = (char *)a[3];
    if (a[1] == PLATFORM_NAME && text) strncpy(text, "NVIDIA CUDA", (size_t)a[2]);
}

static void status(const word *a, word *answer) {
    if (a[1] != EXECUTION_STATUS || !a[3] || *answer) return;
    if (is_said("never")) *(int *)a[3] = SUBMITTED;
    /* Not before it has ended: until then its memory is in use. */
    int ended = status_of(a[0]);
    if (ended && *(int *)a[3] == 0) *(int *)a[3] = ended;
}

static void waited(const word *a, word *answer) {
    for (word at = 0; at < a[0]; at++)
        if (status_of(((const word *)a[1])[at])) *answer = EVENTS_FAILED;
}

static int is(const struct entry *entry, const char *name) { return strcmp(entry->name, name) == 0; }

/* The status with which kernels called `fail` end; 0 where they end well. */
static int kernel_status(void) {
    const char *words = getenv("STUB_OPENCL"), *said = words ? strstr(words, "kernel=") : NULL;
    return said ? (int)strtol(said + strlen("kernel="), NULL, 10) : 0;
}

/* Whether a kernel is called `fail`. */
static int fails(word kernel) {
    enum { FUNCTION_NAME = 0x1190 };
    char name[16] = "";
    find("clGetKernelInfo")(kernel, FUNCTION_NAME, sizeof name, (word)name, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return strcmp(name, "fail") == 0;
}

/* The options of a build with the macro by which the suite has a kernel `fail`. */
static word options_with_fail(word given, char *buffer, size_t size) {
    snprintf(buffer, size, "%s -DSUITE_CAN_FAIL", given ? (const char *)given : "");
    return (word)buffer;
}

/* The number of platforms, or of devices. */
static void counted(const struct entry *entry, unsigned *count) {
    char start[64];
    snprintf(start, sizeof start, "count=%s:", entry->name);
    if (is_said(start) && count) *count = (unsigned)strtoul(strstr(getenv("STUB_OPENCL"), start) + strlen(start), NULL, 10);
}

static void change(const struct entry *entry, int call, const word *a, word *answer) {
    int number = told("event", entry, call);
    if (kernel_status() && is(entry, "clEnqueueNDRangeKernel") && fails(a[1])) number = kernel_status();
    if (number && entry->event >= 0 && *answer == 0 && a[entry->event]) fail(*(word *)a[entry->event], number);
    if (is(entry, "clGetEventInfo")) status(a, answer);
    if (is(entry, "clWaitForEvents")) waited(a, answer);
    if (is(entry, "clGetPlatformIDs")) counted(entry, (unsigned *)a[2]);
    if (is(entry, "clGetDeviceIDs")) counted(entry, (unsigned *)a[4]);
    if (is(entry, "clGetDeviceInfo") && is_said("old")) age(a);
    if (is(entry, "clGetPlatformInfo") && is_said("nvidia")) rename_platform(a);
    if (strncmp(entry->name, "clGet", 5) == 0 && strstr(entry->name, "Info")) spoil(entry, a);
}

/* Without a place for the code. */
static int answers_pointer(const struct entry *entry) { return is(entry, "clSVMAlloc") || strstr(entry->name, "Address"); }

static word refuse(const struct entry *entry, const word *a, int code) {
    if (answers_pointer(entry)) return 0;
    if (entry->error < 0) return code;
    if (a[entry->error]) *(int *)a[entry->error] = code;
    return 0;
}

/* The queues whose work a release waits for. */
static struct {
    pthread_mutex_t lock;
    word open[256];
    int count;
} queues = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Holds the driver's lock while every queue is finished. */
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

static word call(struct entry *entry, word *a) {
    char options[4096];
    if (kernel_status() && is(entry, "clBuildProgram")) a[3] = options_with_fail(a[3], options, sizeof options);
    int count = ++entry->calls, code = told("fail", entry, count);
    /* Command buffers would run kernels behind its back. */
    if (kernel_status() && is(entry, "clGetExtensionFunctionAddressForPlatform") && strstr((const char *)a[1], "CommandBuffer"))
        return 0;
    if (code) return refuse(entry, a, code);
    if (!entry->real) entry->real = find(entry->name);
    if (!entry->real) return refuse(entry, a, INVALID_OPERATION);
    while (is_said("never") && (is(entry, "clFinish") || is(entry, "clWaitForEvents"))) sleep(1);
    if (is_said("waits")) wait_for_queues(entry, a);
    word answer = entry->real(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13]);
    /* What answers an error has 32 bits. */
    if (entry->error < 0 && !answers_pointer(entry)) answer = (int)answer;
    change(entry, count, a, &answer);
    note_queue(entry, answer);
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
