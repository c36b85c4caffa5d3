/* Options of the stubs, from STUB_CUDA (see `cuda.c`), and the error that they inject. */
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int sticky;

static const char *option_text(const char *key, char *value, size_t room) {
    const char *list = getenv("STUB_CUDA");
    size_t length = strlen(key);
    while (list && *list) {
        size_t end = strcspn(list, ",");
        if (end >= length && strncmp(list, key, length) == 0 && (list[length] == '=' || end == length)) {
            size_t count = end > length ? end - length - 1 : 0;
            if (count >= room) count = room - 1;
            memcpy(value, list + length + (end > length), count);
            value[count] = 0;
            return value;
        }
        list += end + (list[end] == ',');
    }
    return NULL;
}

long option_number(const char *key, long fallback) {
    char text[64];
    return option_text(key, text, sizeof text) ? strtol(text, NULL, 10) : fallback;
}

static int is_sticky(int code) { return code == 700 || code == 719 || code == 214; }

/* The error injected into this call of `function`; 0 if none. */
int injected_error(const char *function) {
    static int calls;
    char text[128];
    if (sticky && strncmp(function, "cuCtxP", 6) != 0) return sticky;
    if (!option_text("fail", text, sizeof text)) return 0;
    size_t length = strlen(function);
    if (strncmp(text, function, length) != 0 || text[length] != ':') return 0;
    int code = 0, nth = 1;
    sscanf(text + length, ":%d:%d", &code, &nth);
    int failed = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) == nth ? code : 0;
    if (is_sticky(failed)) sticky = failed;
    return failed;
}
