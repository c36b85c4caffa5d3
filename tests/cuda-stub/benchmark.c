/* Functions that only the benchmark calls, on top of the others. */
#include "cuda.h"

#include <stdlib.h>
#include <string.h>

int cuStreamCreateWithPriority(struct stream **out, unsigned flags, int priority);
int cuModuleLoadDataEx(char **module, const char *image, unsigned count, int *keys, void **values);
int cuMemcpyAsync(char *to, char *from, size_t bytes, struct stream *stream);

int cuStreamCreate(struct stream **out, unsigned flags) { return cuStreamCreateWithPriority(out, flags, 0); }
int cuStreamSynchronize(struct stream *stream) {
    ENTER;
    drain(stream);
    return 0;
}
int cuModuleLoadData(char **module, const char *image) { return cuModuleLoadDataEx(module, image, 0, NULL, NULL); }
int cuMemcpyHtoDAsync_v2(char *to, char *from, size_t bytes, struct stream *stream) { return cuMemcpyAsync(to, from, bytes, stream); }
int cuMemcpyDtoHAsync_v2(char *to, char *from, size_t bytes, struct stream *stream) { return cuMemcpyAsync(to, from, bytes, stream); }
int cuMemHostGetDevicePointer_v2(void **address, void *host, unsigned flags) {
    *address = host;
    return flags ? CUDA_ERROR_INVALID_VALUE : 0;
}
int cuStreamWriteValue64_v2(struct stream *stream, char *to, unsigned long long value, unsigned flags) {
    ENTER;
    struct work work = {.kind = COPY, .to = to, .bytes = sizeof value};
    work.from = work.owned = memcpy(malloc(sizeof value), &value, sizeof value);
    return flags ? CUDA_ERROR_INVALID_VALUE : submit(stream, work);
}
