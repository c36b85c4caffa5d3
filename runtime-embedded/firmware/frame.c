/* Frames: header, payload and CRC-32, encoded so that a zero byte ends them and occurs nowhere else (COBS). */

#include "frame.h"
#include "protocol.h"
#include "uart.h"

uint64_t runtime_load(const uint8_t *bytes, uint32_t count) {
    uint64_t value = 0;
    while (count-- > 0) value = value << 8 | bytes[count];
    return value;
}

void runtime_store(uint8_t *bytes, uint32_t count, uint64_t value) {
    for (; count > 0; count--, value >>= 8) *bytes++ = (uint8_t)value;
}

/* In place: a decoded byte never overtakes the encoded ones. Returns the number of bytes, or 0 for a damaged encoding. */
static uint32_t decode(uint8_t *bytes, uint32_t length) {
    uint32_t from = 0, to = 0;
    while (from < length) {
        uint32_t block = bytes[from++], end = from + block - 1;
        if (block == 0 || end > length) return 0;
        while (from < end) bytes[to++] = bytes[from++];
        if (block < 255 && from < length) bytes[to++] = 0;
    }
    return to;
}

int runtime_frame_take(struct runtime_receiver *receiver, uint8_t byte) {
    uint32_t length = receiver->length;
    if (byte != 0) {
        if (length < sizeof receiver->bytes) receiver->bytes[length] = byte;
        if (length <= sizeof receiver->bytes) receiver->length++;
        return RUNTIME_FRAME_NONE;
    }
    receiver->length = 0;
    if (length == 0) return RUNTIME_FRAME_NONE;
    if (length > sizeof receiver->bytes) return RUNTIME_FRAME_DAMAGED;
    length = decode(receiver->bytes, length);
    if (length < RUNTIME_FRAME_HEADER + 4 || length > RUNTIME_FRAME_BYTES) return RUNTIME_FRAME_DAMAGED;
    uint32_t content = length - 4;
    receiver->payload = content - RUNTIME_FRAME_HEADER;
    if (runtime_load(receiver->bytes + 2, 2) != receiver->payload) return RUNTIME_FRAME_DAMAGED;
    if (runtime_load(receiver->bytes + content, 4) != runtime_crc((uintptr_t)receiver->bytes, content))
        return RUNTIME_FRAME_DAMAGED;
    return RUNTIME_FRAME_WHOLE;
}

void runtime_frame_send(uint8_t *frame, uint32_t payload) {
    uint32_t content = RUNTIME_FRAME_HEADER + payload, length = content + 4, at = 0;
    runtime_store(frame + 2, 2, payload);
    runtime_store(frame + content, 4, runtime_crc((uintptr_t)frame, content));
    for (;;) {
        uint32_t run = 0;
        while (run < 254 && at + run < length && frame[at + run] != 0) run++;
        runtime_uart_put((uint8_t)(run + 1));
        for (uint32_t i = 0; i < run; i++) runtime_uart_put(frame[at++]);
        if (at == length) break;
        if (run < 254) at++;
    }
    runtime_uart_put(0);
}
