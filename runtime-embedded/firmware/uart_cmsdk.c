/* The driver of serial ports of Arm's CMSDK kind. */

#include "uart.h"

#ifndef RUNTIME_UART_DIVISOR
#define RUNTIME_UART_DIVISOR 16
#endif
#define REGISTER(offset) (*(volatile uint32_t *)(RUNTIME_UART_BASE + (offset)))

void runtime_uart_start(void) {
    REGISTER(16) = RUNTIME_UART_DIVISOR;
    REGISTER(8) = 3;
}

void runtime_uart_put(uint8_t byte) {
    while (REGISTER(4) & 1) {}
    REGISTER(0) = byte;
}

int runtime_uart_take(void) { return REGISTER(4) & 2 ? (int)(REGISTER(0) & 0xff) : -1; }
