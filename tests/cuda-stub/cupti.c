/* A CUPTI on a machine where only root may read counters. Aborts if the profiler is used outside a session. */
#include <stddef.h>
#include <stdlib.h>

#define SUCCESS 0
#define INSUFFICIENT_PRIVILEGES 35

static int in_session;

int cuptiGetResultString(int code, const char **text) {
    *text = code == INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "another";
    return SUCCESS;
}

int cuptiProfilerInitialize(void *params) {
    (void)params;
    if (in_session) abort();
    in_session = 1;
    return SUCCESS;
}

int cuptiProfilerDeInitialize(void *params) {
    (void)params;
    if (!in_session) abort();
    in_session = 0;
    return SUCCESS;
}

int cuptiProfilerGetCounterAvailability(size_t *params) {
    /* Versions before 13.5 refuse a larger structure. */
    if (!in_session || *params != 40) abort();
    return INSUFFICIENT_PRIVILEGES;
}

/* Without counters that may be read, nothing else is called. */
#define NEVER(name) \
    int name(void *params) { \
        (void)params; \
        abort(); \
    }
NEVER(cuptiDeviceGetChipName)
NEVER(cuptiProfilerHostInitialize)
NEVER(cuptiProfilerHostDeinitialize)
NEVER(cuptiProfilerHostGetBaseMetrics)
NEVER(cuptiProfilerHostGetMetricProperties)
NEVER(cuptiProfilerHostConfigAddMetrics)
NEVER(cuptiProfilerHostGetConfigImageSize)
NEVER(cuptiProfilerHostGetConfigImage)
NEVER(cuptiProfilerHostGetNumOfPasses)
NEVER(cuptiProfilerHostEvaluateToGpuValues)
NEVER(cuptiRangeProfilerEnable)
NEVER(cuptiRangeProfilerDisable)
NEVER(cuptiRangeProfilerStart)
NEVER(cuptiRangeProfilerStop)
NEVER(cuptiRangeProfilerPushRange)
NEVER(cuptiRangeProfilerPopRange)
NEVER(cuptiRangeProfilerDecodeData)
NEVER(cuptiRangeProfilerGetCounterDataSize)
NEVER(cuptiRangeProfilerCounterDataImageInitialize)
NEVER(cuptiRangeProfilerGetCounterDataInfo)
#ifndef OLD
NEVER(cuptiRangeProfilerSetConfig)
#endif
