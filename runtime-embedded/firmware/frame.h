/* Frames of the UART link; docs/embedded.md specifies them. Nothing here depends on a processor. */

#ifndef RUNTIME_FRAME_H
#define RUNTIME_FRAME_H

#include <stdint.h>

/* Bytes of the largest payload; the host learns them with its first request. */
#ifndef RUNTIME_UART_PAYLOAD
#define RUNTIME_UART_PAYLOAD 512
#endif
#define RUNTIME_FRAME_HEADER 8
#define RUNTIME_FRAME_BYTES (RUNTIME_FRAME_HEADER + RUNTIME_UART_PAYLOAD + 4)

enum { RUNTIME_FRAME_NONE, RUNTIME_FRAME_DAMAGED, RUNTIME_FRAME_WHOLE };

struct runtime_receiver {
    uint32_t length; /* of what has arrived of the next frame */
    uint32_t payload; /* bytes of the payload of the last whole frame */
    uint8_t bytes[RUNTIME_FRAME_BYTES + RUNTIME_FRAME_BYTES / 254 + 1];
};

/* Takes the next byte of the line; returns what it completes. */
int runtime_frame_take(struct runtime_receiver *receiver, uint8_t byte);
/* Completes the frame, whose header and payload are there, and sends it. */
void runtime_frame_send(uint8_t *frame, uint32_t payload);

uint64_t runtime_load(const uint8_t *bytes, uint32_t count);
void runtime_store(uint8_t *bytes, uint32_t count, uint64_t value);

#endif
