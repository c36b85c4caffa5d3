/* What both compilers of the stub share: a cubin is an ELF header for sm_90 with the text behind it, and the log has figures. */
#define _GNU_SOURCE
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *assemble(const char *text, size_t *bytes) {
    *bytes = CUBIN_HEADER_BYTES + strlen(text) + 1;
    char *cubin = calloc(1, *bytes);
    memcpy(cubin, "\x7f" "ELF\2\1\1\x33\7", 9);
    cubin[16] = 2, cubin[18] = (char)190, cubin[52] = CUBIN_HEADER_BYTES;
    memcpy(cubin + 48, (uint32_t[]){0x5a055a}, 4);
    memcpy(cubin + CUBIN_HEADER_BYTES, text, strlen(text));
    return cubin;
}

const char *assembled_text(const char *image) { return memcmp(image, "\x7f" "ELF", 4) ? image : image + CUBIN_HEADER_BYTES; }

const char *assembler_error(const char *text) {
    if (strstr(text, "too much local"))
        return "ptxas error   : Entry function 'f' uses too much local data (0x90000 bytes, 0x80000 max)";
    if (!strstr(text, "too much shared")) return NULL;
    return "ptxas error   : Entry function 'f' uses too much shared data (0x61a80 bytes, 0xc000 max)";
}

void describe_kernels(const char *text, int registers, char *log, size_t room) {
    int needed = 40, spilled = registers && registers < needed ? (needed - registers) * 4 : 0;
    for (const char *at = text; (at = strstr(at, "void ")); at++) {
        int length = (int)strcspn(at + 5, "( ");
        size_t used = strlen(log);
        snprintf(log + used, room - used,
                 "ptxas info    : Compiling entry function '%.*s' for 'sm_90'\nptxas info    : Function properties for %.*s\n"
                 "    %d bytes stack frame, %d bytes spill stores, %d bytes spill loads\n"
                 "ptxas info    : Used %d registers, used 0 barriers\n",
                 length, at + 5, length, at + 5, spilled, spilled, spilled, spilled ? registers : needed);
    }
}
