/* Events: recorded on a stream, waited for by another, queried by the host. */
#include "cuda.h"
#include <stdlib.h>

int cuStreamWaitEvent(struct stream *stream, struct event *event, unsigned flags) {
    (void)flags;
    ENTER;
    return submit(stream, (struct work){.kind = WAIT, .event = event});
}
int cuEventCreate(struct event **event, unsigned flags) {
    (void)flags;
    ENTER_WITH_CONTEXT;
    *event = calloc(1, sizeof **event);
    return 0;
}
int cuEventDestroy_v2(struct event *event) {
    /* Leaked: work in flight may refer to it. */
    (void)event;
    return 0;
}
int cuEventRecord(struct event *event, struct stream *stream) {
    ENTER;
    return submit(stream, (struct work){.kind = RECORD, .event = event});
}
int cuEventQuery(struct event *event) {
    ENTER;
    pthread_mutex_lock(&lock);
    int pending = event->completed != event->recorded;
    pthread_mutex_unlock(&lock);
    return pending ? CUDA_ERROR_NOT_READY : 0;
}
int cuEventElapsedTime(float *ms, struct event *begin, struct event *end) {
    ENTER_WITH_CONTEXT;
    pthread_mutex_lock(&lock);
    *ms = (float)(end->ms - begin->ms);
    pthread_mutex_unlock(&lock);
    return 0;
}
