/* The driver of serial ports of the kind 16550. */

#include "uart.h"

#ifndef RUNTIME_UART_STRIDE
#define RUNTIME_UART_STRIDE 1
#endif
#define REGISTER(number) (*(volatile uint8_t *)(RUNTIME_UART_BASE + (number) * RUNTIME_UART_STRIDE))

void runtime_uart_start(void) {
    REGISTER(1) = 0;
#ifdef RUNTIME_UART_DIVISOR
    REGISTER(3) = 0x83;
    REGISTER(0) = RUNTIME_UART_DIVISOR & 0xff;
    REGISTER(1) = RUNTIME_UART_DIVISOR >> 8;
#endif
    /* Eight bits, no parity; FIFOs enabled and cleared, with the highest trigger level: QEMU delivers up to that many bytes at once. */
    REGISTER(3) = 3;
    REGISTER(2) = 0xc7;
}

void runtime_uart_put(uint8_t byte) {
    while ((REGISTER(5) & 0x20) == 0) {}
    REGISTER(0) = byte;
}

int runtime_uart_take(void) { return REGISTER(5) & 1 ? REGISTER(0) : -1; }
