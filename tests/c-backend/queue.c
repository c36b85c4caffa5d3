/* In-order queues: a list of commands, and a thread that runs them in order. */

#include "backend.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct queue;

/* A wait of a command for a ticket of another queue. */
struct edge {
    struct edge *next;
    struct queue *source;
    uint64_t ticket;
};

enum work { WORK_LAUNCH, WORK_MOVE, WORK_FILL, WORK_NOTHING, WORK_TIMESTAMP };

struct command {
    struct command *next;
    uint64_t ticket;
    struct edge *waits;
    enum work work;
    const struct builtin *kernel;
    struct arguments arguments;
    uint8_t *to;
    const uint8_t *from;
    uint64_t bytes;
    uint8_t pattern[16];
    uint32_t pattern_bytes;
    uint64_t timestamp_ns;
};

/* A queue lives while its handle is open or a command of another queue waits for it. */
struct queue {
    atomic_uint references;
    struct device *device;
    pthread_t worker;
    pthread_mutex_t lock;
    /* Signals a new command, or the closing of the queue. */
    pthread_cond_t more;
    /* Signals the end of a ticket. */
    pthread_cond_t ended;
    /* The lock protects all fields below. */
    struct command *first, **last;
    struct edge *waits;
    struct command *timestamps;
    uint64_t completed, first_failed;
    rt_Error *failure;
    uint64_t calls[CALLS];
    int closing;
};

static void drop_reference(struct queue *queue);

static void free_edges(struct edge *edge) {
    while (edge != NULL) {
        struct edge *next = edge->next;
        drop_reference(edge->source);
        free(edge);
        edge = next;
    }
}

static void free_commands(struct command *command) {
    while (command != NULL) {
        struct command *next = command->next;
        free_edges(command->waits);
        free(command->arguments.list);
        free(command);
        command = next;
    }
}

static void drop_reference(struct queue *queue) {
    if (atomic_fetch_sub(&queue->references, 1) == 1) {
        free_commands(queue->timestamps);
        if (queue->failure != NULL && queue->failure->release != NULL) {
            queue->failure->release(queue->failure);
        }
        pthread_cond_destroy(&queue->ended);
        pthread_cond_destroy(&queue->more);
        pthread_mutex_destroy(&queue->lock);
        free(queue);
    }
}

static rt_Status execute(struct queue *queue, struct command *command) {
    switch (command->work) {
    case WORK_LAUNCH:
        return command->kernel->run(&command->arguments);
    case WORK_MOVE:
        if (command->bytes > 0) {
            memmove(command->to, command->from, command->bytes);
        }
        return NULL;
    case WORK_FILL:
        for (uint64_t i = 0; i < command->bytes; i++) {
            command->to[i] = command->pattern[i % command->pattern_bytes];
        }
        return NULL;
    case WORK_TIMESTAMP:
        command->timestamp_ns = now_ns() - queue->device->opened_ns;
        return NULL;
    case WORK_NOTHING:
        break;
    }
    return NULL;
}

/* Waits until the work of other queues has ended, successfully or not: core propagates failures. */
static void wait_for_edges(const struct edge *edge) {
    for (; edge != NULL; edge = edge->next) {
        pthread_mutex_lock(&edge->source->lock);
        while (edge->source->completed < edge->ticket) {
            pthread_cond_wait(&edge->source->ended, &edge->source->lock);
        }
        pthread_mutex_unlock(&edge->source->lock);
    }
}

/* Ends the first command; the caller holds the lock. */
static void end_first(struct queue *queue, rt_Status failure) {
    struct command *command = queue->first;
    queue->first = command->next;
    if (queue->first == NULL) {
        queue->last = &queue->first;
    }
    if (failure != NULL) {
        queue->first_failed = command->ticket;
        queue->failure = failure;
    }
    queue->completed = command->ticket;
    pthread_cond_broadcast(&queue->ended);
    command->next = NULL;
    if (command->work == WORK_TIMESTAMP && queue->first_failed == 0) {
        command->next = queue->timestamps;
        queue->timestamps = command;
    } else {
        free_commands(command);
    }
}

static void *work(void *argument) {
    struct queue *queue = argument;
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        while (queue->first == NULL && !queue->closing) {
            pthread_cond_wait(&queue->more, &queue->lock);
        }
        if (queue->first == NULL) {
            break;
        }
        struct command *command = queue->first;
        rt_Status failure = NULL;
        /* Failure is permanent: nothing runs after it. */
        if (queue->first_failed == 0) {
            pthread_mutex_unlock(&queue->lock);
            wait_for_edges(command->waits);
            failure = execute(queue, command);
            pthread_mutex_lock(&queue->lock);
        }
        free_edges(command->waits);
        command->waits = NULL;
        end_first(queue, failure);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

/* Starts the worker with all signals blocked: they are for the threads of the program. */
static int start_worker(struct queue *queue) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&queue->worker, NULL, work, queue);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Condition variables use the monotonic clock, which is never set. */
static int prepare(struct queue *queue) {
    pthread_condattr_t monotonic;
    int error = pthread_condattr_init(&monotonic);
    if (error != 0) {
        return error;
    }
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    error = pthread_mutex_init(&queue->lock, NULL);
    if (error == 0 && (error = pthread_cond_init(&queue->more, &monotonic)) != 0) {
        pthread_mutex_destroy(&queue->lock);
    } else if (error == 0 && (error = pthread_cond_init(&queue->ended, &monotonic)) != 0) {
        pthread_cond_destroy(&queue->more);
        pthread_mutex_destroy(&queue->lock);
    }
    pthread_condattr_destroy(&monotonic);
    return error;
}

static rt_Status open_queue(rt_Handle device, const rt_QueueOptions *options, rt_Handle *out) {
    struct queue *queue = calloc(1, sizeof *queue);
    /* All queues have the same priority and support timestamps. */
    (void)options;
    int error = queue == NULL ? ENOMEM : prepare(queue);
    if (error != 0) {
        free(queue);
        return fail(RT_ERROR_OUT_OF_RESOURCES, "no queue: %s", strerror(error));
    }
    queue->references = 1;
    queue->device = device;
    queue->last = &queue->first;
    error = start_worker(queue);
    if (error != 0) {
        drop_reference(queue);
        return fail(RT_ERROR_OUT_OF_RESOURCES, "no thread for the queue: %s", strerror(error));
    }
    *out = queue;
    return NULL;
}

static void close_queue(rt_Handle handle) {
    struct queue *queue = handle;
    pthread_mutex_lock(&queue->lock);
    queue->closing = 1;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->worker, NULL);
    /* Otherwise, queues that wait for each other would keep each other alive. */
    free_edges(queue->waits);
    queue->waits = NULL;
    drop_reference(queue);
}

static void count(struct queue *queue, enum call call) {
    pthread_mutex_lock(&queue->lock);
    queue->calls[call]++;
    pthread_mutex_unlock(&queue->lock);
}

/* Passes a command to the worker; `command` is null if its allocation failed. */
static rt_Status submit(struct queue *queue, enum call call, rt_SubmitInfo info, struct command *command) {
    if (command == NULL) {
        return fail(RT_ERROR_OUT_OF_RESOURCES, "no memory for a command");
    }
    pthread_mutex_lock(&queue->lock);
    queue->calls[call]++;
    command->ticket = info.ticket;
    command->waits = queue->waits;
    queue->waits = NULL;
    memcpy(command->arguments.calls, queue->calls, sizeof queue->calls);
    *queue->last = command;
    queue->last = &command->next;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

static struct command *new_command(enum work work) {
    struct command *command = calloc(1, sizeof *command);
    if (command != NULL) {
        command->work = work;
    }
    return command;
}

static rt_Status launch(rt_Handle queue, rt_SubmitInfo info, rt_Handle kernel, const rt_Launch *theirs) {
    rt_Launch given;
    read_struct(&given, sizeof given, theirs);
    struct command *command = new_command(WORK_LAUNCH);
    if (command != NULL) {
        command->kernel = kernel;
        rt_Status refused = copy_arguments(&given, kernel, &command->arguments);
        if (refused != NULL) {
            free(command);
            return refused;
        }
    }
    return submit(queue, CALL_LAUNCH, info, command);
}

static rt_Status move(struct queue *queue, enum call call, rt_SubmitInfo info, struct command moved) {
    struct command *command = new_command(WORK_MOVE);
    if (command != NULL) {
        *command = moved;
        command->work = WORK_MOVE;
    }
    return submit(queue, call, info, command);
}

static rt_Status write(rt_Handle queue, rt_SubmitInfo info, rt_Handle destination, uint64_t offset, const uint8_t *source,
                       uint64_t bytes) {
    struct command moved = {.from = source, .bytes = bytes};
    rt_Status refused = checked_address(destination, offset, bytes, &moved.to);
    return refused != NULL ? refused : move(queue, CALL_WRITE, info, moved);
}

static rt_Status read(rt_Handle queue, rt_SubmitInfo info, rt_Handle source, uint64_t offset, uint8_t *destination,
                      uint64_t bytes) {
    struct command moved = {.to = destination, .bytes = bytes};
    uint8_t *from = NULL;
    rt_Status refused = checked_address(source, offset, bytes, &from);
    moved.from = from;
    return refused != NULL ? refused : move(queue, CALL_READ, info, moved);
}

static rt_Status copy(rt_Handle queue, rt_SubmitInfo info, rt_Handle destination, uint64_t destination_offset,
                      rt_Handle source, uint64_t source_offset, uint64_t bytes) {
    struct command moved = {.bytes = bytes};
    uint8_t *from = NULL;
    rt_Status refused = checked_address(source, source_offset, bytes, &from);
    if (refused == NULL) {
        refused = checked_address(destination, destination_offset, bytes, &moved.to);
    }
    moved.from = from;
    return refused != NULL ? refused : move(queue, CALL_COPY, info, moved);
}

static rt_Status fill(rt_Handle queue, rt_SubmitInfo info, rt_Handle destination, uint64_t offset, uint64_t bytes,
                      const uint8_t *pattern, uint32_t pattern_bytes) {
    uint8_t *to = NULL;
    rt_Status refused = checked_address(destination, offset, bytes, &to);
    if (refused != NULL) {
        return refused;
    }
    if (pattern_bytes == 0 || pattern_bytes > 16 || bytes % pattern_bytes != 0) {
        return fail(RT_ERROR_INVALID_ARGUMENT, "a pattern of %u bytes; 1, 2, 4, 8 or 16 that divide %llu",
                    pattern_bytes, (unsigned long long)bytes);
    }
    struct command *command = new_command(WORK_FILL);
    if (command != NULL) {
        command->to = to;
        command->bytes = bytes;
        command->pattern_bytes = pattern_bytes;
        memcpy(command->pattern, pattern, pattern_bytes);
    }
    return submit(queue, CALL_FILL, info, command);
}

static rt_Status noop(rt_Handle queue, rt_SubmitInfo info) {
    return submit(queue, CALL_NOOP, info, new_command(WORK_NOTHING));
}

static rt_Status timestamp(rt_Handle queue, rt_SubmitInfo info) {
    return submit(queue, CALL_TIMESTAMP, info, new_command(WORK_TIMESTAMP));
}

static rt_Status read_timestamp(rt_Handle handle, uint64_t ticket, uint64_t *out) {
    struct queue *queue = handle;
    pthread_mutex_lock(&queue->lock);
    struct command **at = &queue->timestamps, *found;
    while (*at != NULL && (*at)->ticket != ticket) {
        at = &(*at)->next;
    }
    found = *at;
    if (found != NULL) {
        *at = found->next;
    }
    pthread_mutex_unlock(&queue->lock);
    if (found == NULL) {
        return fail(RT_ERROR_NOT_FOUND, "ticket %llu has no timestamp to read", (unsigned long long)ticket);
    }
    *out = found->timestamp_ns;
    free(found);
    return NULL;
}

/* The end of every ticket is observable, so there is nothing to record. */
static rt_Status signal_ticket(rt_Handle queue, uint64_t ticket) {
    (void)ticket;
    count(queue, CALL_SIGNAL);
    return NULL;
}

/* Submissions are not batched. */
static rt_Status flush(rt_Handle queue) {
    count(queue, CALL_FLUSH);
    return NULL;
}

static rt_Status poll(rt_Handle handle, rt_Progress *out) {
    struct queue *queue = handle;
    pthread_mutex_lock(&queue->lock);
    queue->calls[CALL_POLL]++;
    *out = (rt_Progress){queue->completed, queue->first_failed};
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

static rt_Status wait(rt_Handle handle, uint64_t ticket, uint64_t slice_ns) {
    struct queue *queue = handle;
    uint64_t longest = UINT64_C(3600) * 1000000000;
    uint64_t until = now_ns() + (slice_ns < longest ? slice_ns : longest);
    struct timespec end = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
    pthread_mutex_lock(&queue->lock);
    queue->calls[CALL_WAIT]++;
    int error = 0;
    while (queue->completed < ticket && error == 0) {
        error = pthread_cond_timedwait(&queue->ended, &queue->lock, &end);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

/* The next submission takes the edge; without one, there is nothing to wait. */
static rt_Status wait_for(rt_Handle handle, rt_Handle other, uint64_t ticket) {
    struct queue *queue = handle, *source = other;
    if (source == queue) {
        return NULL;
    }
    struct edge *edge = malloc(sizeof *edge);
    if (edge == NULL) {
        return fail(RT_ERROR_OUT_OF_RESOURCES, "no memory for a dependency");
    }
    atomic_fetch_add(&source->references, 1);
    pthread_mutex_lock(&queue->lock);
    queue->calls[CALL_WAIT_FOR]++;
    *edge = (struct edge){queue->waits, source, ticket};
    queue->waits = edge;
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

static rt_Status failure(rt_Handle handle) {
    struct queue *queue = handle;
    pthread_mutex_lock(&queue->lock);
    rt_Status error = queue->failure == NULL ? NULL : copy_error(queue->failure);
    pthread_mutex_unlock(&queue->lock);
    return error;
}

/* `try_begin_inline` and `run_inline` are null: work never runs on the caller's thread. */
const rt_QueueTable queue_table = {
    .struct_size = sizeof(rt_QueueTable),
    .open = open_queue,
    .close = close_queue,
    .launch = launch,
    .write = write,
    .read = read,
    .copy = copy,
    .fill = fill,
    .noop = noop,
    .timestamp = timestamp,
    .read_timestamp = read_timestamp,
    .signal = signal_ticket,
    .flush = flush,
    .poll = poll,
    .wait = wait,
    .wait_for = wait_for,
    .failure = failure,
};
