/* A serial port, and the commands that arrive over it. */

#ifndef RUNTIME_UART_H
#define RUNTIME_UART_H

#include <stdint.h>

/* The driver: three functions, in a file that the board chooses. `take` returns -1 if no byte has arrived. */
void runtime_uart_start(void);
void runtime_uart_put(uint8_t byte);
int runtime_uart_take(void);

/* Memory that the host may access. */
struct runtime_region {
    uintptr_t begin, end;
    int writable;
};
extern const struct runtime_region runtime_regions[2];

/* Reports the start of the firmware to the host. */
void runtime_serve_start(void);
/* Executes a byte of a request; returns whether the host wants the command in the mailbox executed. */
int runtime_serve_byte(uint8_t byte);
/* Reports the end of the last command, then serves the host until it wants the next one. */
void runtime_serve(void);
/* Starts the firmware again, as after a reset. */
void runtime_restart(void);

#endif
