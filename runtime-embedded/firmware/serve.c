/* Serves the host over the UART, in place of a debugger. */

#include "frame.h"
#include "protocol.h"
#include "uart.h"

enum { HELLO = 1, READ, WRITE, RUN, CHECKSUM, RESTART };
enum { REPLY = 0x80, LOG = 0xc0, BOOT, DONE, REFUSED = 0xe0 };
enum { UNKNOWN = 1, OUTSIDE, OTHER_SESSION, LENGTH, DAMAGED };
enum { IDLE, RUNNING, ENDED };

static struct runtime_receiver receiver;
static uint8_t frame[RUNTIME_FRAME_BYTES];
/* The number that the host has chosen; a reset clears it. */
static uint32_t session;
/* The last command, so that a repeated request does not execute it twice. */
static int run_state;
static uint8_t run_sequence;

static void send(uint8_t kind, uint8_t sequence, uint32_t payload) {
    frame[0] = kind;
    frame[1] = sequence;
    runtime_store(frame + 4, 4, session);
    runtime_frame_send(frame, payload);
}

static void refuse(uint8_t sequence, uint8_t reason) {
    frame[RUNTIME_FRAME_HEADER] = reason;
    send(REFUSED, sequence, 1);
}

static int is_accessible(uint64_t address, uint64_t bytes, int write) {
    for (unsigned i = 0; i < sizeof runtime_regions / sizeof *runtime_regions; i++) {
        const struct runtime_region *region = &runtime_regions[i];
        if (write && !region->writable) continue;
        if (address >= region->begin && address <= region->end && bytes <= region->end - address) return 1;
    }
    return 0;
}

static void hello(uint8_t sequence) {
    uint8_t *payload = frame + RUNTIME_FRAME_HEADER;
    session = (uint32_t)runtime_load(receiver.bytes + 4, 4);
    run_state = IDLE;
    runtime_store(payload, 2, RUNTIME_VERSION);
    runtime_store(payload + 2, 2, RUNTIME_UART_PAYLOAD);
    runtime_store(payload + 4, 8, (uintptr_t)&runtime_mailbox);
    send(HELLO | REPLY, sequence, 12);
}

/* The requests that name an address: read, write, checksum. */
static void access(uint8_t kind, uint8_t sequence) {
    const uint8_t *payload = receiver.bytes + RUNTIME_FRAME_HEADER;
    uint32_t fixed = kind == WRITE ? 8 : 16;
    /* The host knows the end of the last run now, and its numbers repeat: an equal one is another run. */
    run_state = IDLE;
    if (kind == WRITE ? receiver.payload < fixed : receiver.payload != fixed) {
        refuse(sequence, LENGTH);
        return;
    }
    uint64_t address = runtime_load(payload, 8);
    uint64_t bytes = kind == WRITE ? receiver.payload - fixed : runtime_load(payload + 8, 8);
    volatile uint8_t *memory = (volatile uint8_t *)(uintptr_t)address;
    if (kind == READ && bytes > RUNTIME_UART_PAYLOAD) {
        refuse(sequence, LENGTH);
    } else if (!is_accessible(address, bytes, kind == WRITE)) {
        refuse(sequence, OUTSIDE);
    } else if (kind == READ) {
        for (uint32_t i = 0; i < bytes; i++) frame[RUNTIME_FRAME_HEADER + i] = memory[i];
        send(READ | REPLY, sequence, (uint32_t)bytes);
    } else if (kind == WRITE) {
        for (uint32_t i = 0; i < bytes; i++) memory[i] = payload[fixed + i];
        send(WRITE | REPLY, sequence, 0);
    } else {
        runtime_store(frame + RUNTIME_FRAME_HEADER, 4, runtime_crc(address, bytes));
        send(CHECKSUM | REPLY, sequence, 4);
    }
}

static int run(uint8_t sequence) {
    int is_repeated = run_state != IDLE && run_sequence == sequence;
    send(RUN | REPLY, sequence, 0);
    if (is_repeated && run_state == ENDED) send(DONE, sequence, 0);
    if (is_repeated) return 0;
    run_state = RUNNING;
    run_sequence = sequence;
    return 1;
}

int runtime_serve_byte(uint8_t byte) {
    int taken = runtime_frame_take(&receiver, byte);
    if (taken == RUNTIME_FRAME_DAMAGED) refuse(0, DAMAGED);
    if (taken != RUNTIME_FRAME_WHOLE) return 0;
    uint8_t kind = receiver.bytes[0], sequence = receiver.bytes[1];
    if (kind != HELLO && (session == 0 || runtime_load(receiver.bytes + 4, 4) != session)) {
        refuse(sequence, OTHER_SESSION);
        return 0;
    }
    switch (kind) {
    case HELLO: hello(sequence); return 0;
    case READ:
    case WRITE:
    case CHECKSUM: access(kind, sequence); return 0;
    case RUN: return run(sequence);
    case RESTART:
        send(RESTART | REPLY, sequence, 0);
        runtime_restart();
        return 0;
    default: refuse(sequence, UNKNOWN); return 0;
    }
}

void runtime_serve(void) {
    if (run_state == RUNNING) {
        run_state = ENDED;
        send(DONE, run_sequence, 0);
    }
    for (;;) {
        int byte = runtime_uart_take();
        if (byte >= 0 && runtime_serve_byte((uint8_t)byte)) return;
    }
}

void runtime_serve_start(void) {
    runtime_uart_start();
    /* Terminates a partial frame that the reset left on the line. */
    runtime_uart_put(0);
    send(BOOT, 0, 0);
}

void runtime_log(const char *text) {
    while (*text) {
        uint32_t length = 0;
        for (; length < RUNTIME_UART_PAYLOAD && *text; length++) frame[RUNTIME_FRAME_HEADER + length] = (uint8_t)*text++;
        send(LOG, 0, length);
    }
}
