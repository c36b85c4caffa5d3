/* The firmware's UART protocol under a fuzzer: whatever arrives, it accesses only the memory of its regions, and sends whole frames. */

#include <string.h>

#include "frame.h"
#include "protocol.h"
#include "uart.h"

#define SESSION 0x01000001u

static uint8_t flash[300], ram[2000];
const struct runtime_region runtime_regions[2] = {
    {(uintptr_t)flash, (uintptr_t)(flash + sizeof flash), 0},
    {(uintptr_t)ram, (uintptr_t)(ram + sizeof ram), 1},
};
volatile struct runtime_mailbox runtime_mailbox;

/* What the firmware has sent. */
static struct runtime_receiver host;
static uint8_t last_kind;
/* A request that is being encoded, or null. */
static uint8_t *request;
static uint32_t request_length;

void runtime_uart_start(void) {}
int runtime_uart_take(void) { return -1; }
void runtime_restart(void) {}

void runtime_uart_put(uint8_t byte) {
    if (request)
        request[request_length++] = byte;
    else
        switch (runtime_frame_take(&host, byte)) {
        case RUNTIME_FRAME_DAMAGED: __builtin_trap();
        case RUNTIME_FRAME_WHOLE: last_kind = host.bytes[0];
        }
}

/* Sends a request with a valid checksum to the firmware; returns whether it starts a run. */
static int deliver(uint8_t *frame, uint32_t payload) {
    int runs = 0;
    static uint8_t encoded[sizeof host.bytes + 2];
    request = encoded;
    request_length = 0;
    runtime_frame_send(frame, payload);
    request = 0;
    for (uint32_t at = 0; at < request_length; at++) runs |= runtime_serve_byte(encoded[at]);
    return runs;
}

static void greet(void) {
    uint8_t frame[RUNTIME_FRAME_HEADER + 4] = {1, 1};
    runtime_store(frame + 4, 4, SESSION);
    runtime_serve_byte(0);
    deliver(frame, 0);
}

/* Takes a request from the input: kind, place, offset, length, contents. Returns the bytes that it used. */
static size_t act(const uint8_t *data, size_t size) {
    uint8_t frame[RUNTIME_FRAME_BYTES] = {0};
    if (size < 6) return size;
    uint64_t places[4] = {(uintptr_t)flash, (uintptr_t)ram, 0, UINT64_MAX};
    uint64_t address = places[data[1] & 3] + (uint64_t)data[2] * 10 - data[3];
    uint64_t bytes = data[1] & 4 ? UINT64_MAX - data[4] : data[4] * 3u;
    uint32_t payload = data[1] & 8 ? data[5] : 16;
    uint8_t *contents = frame + RUNTIME_FRAME_HEADER;
    frame[0] = data[0];
    frame[1] = data[5];
    runtime_store(frame + 4, 4, data[1] & 16 ? 5 : SESSION);
    runtime_store(contents, 8, address);
    runtime_store(contents + 8, 8, bytes);
    if (data[0] == 3) {
        size_t copied = size - 6 < data[4] ? size - 6 : data[4];
        memcpy(contents + 8, data + 6, copied);
        deliver(frame, 8 + (uint32_t)copied);
        return 6 + copied;
    }
    /* A repeated request does not run twice. */
    if (deliver(frame, payload) && deliver(frame, payload)) __builtin_trap();
    return 6;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    greet();
    if (size == 0) return 0;
    if (*data & 1) {
        for (size_t at = 1; at < size; at++) runtime_serve_byte(data[at]);
    } else {
        for (size_t at = 1; at < size;) at += act(data + at, size - at);
    }
    greet();
    char text[40] = {0};
    memcpy(text, data, size < 39 ? size : 39);
    runtime_log(text);
    if (*text && last_kind != 0xc0) __builtin_trap();
    return 0;
}
