/* A fake simulator: **a stand-in, not one of Kalray's.** It makes a socket in the folder of its command line, and waits. The variable
   FAKE_SIMULATOR, a list of words, changes that; FAKE_SIMULATOR_IDS is a file that gets the number of each of its processes, its own first. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *modes;

static char terminated[4096];
static void terminate(int signal) {
    (void)signal;
    close(creat(terminated, 0600));
    _exit(0);
}

static int is(const char *mode) { return modes && strstr(modes, mode) != NULL; }

static void note_id(void) {
    FILE *file = fopen(getenv("FAKE_SIMULATOR_IDS"), "a");
    if (file) {
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
    }
}

int main(int count, char **arguments) {
    const char *folder = NULL;
    modes = getenv("FAKE_SIMULATOR");
    for (int index = 1; index < count; index++) {
        if (!strncmp(arguments[index], "--mppa-wdir=", 12))
            folder = arguments[index] + 12;
        else if (!strcmp(arguments[index], "--work-dir") && index + 1 < count)
            folder = arguments[index + 1];
    }
    if (!folder || chdir(folder))
        return 2;
    if (is("stubborn"))
        signal(SIGTERM, SIG_IGN);
    if (is("polite")) {
        /* Shows that it was asked to end. */
        snprintf(terminated, sizeof terminated, "%s.terminated", getenv("FAKE_SIMULATOR_IDS"));
        signal(SIGTERM, terminate);
    }
    note_id();
    if (is("forks") && fork() == 0)
        note_id();
    printf("no licence for %s\n", arguments[0]);
    fflush(stdout);
    if (is("ends"))
        return 7;
    if (is("files"))
        fclose(fopen("memory", "w"));
    if (!is("silent") && !is("files")) {
        struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
        int listener = socket(AF_UNIX, SOCK_STREAM, 0);
        bind(listener, (struct sockaddr *)&address, sizeof address);
    }
    printf("accepting connections\n");
    fflush(stdout);
    for (;;)
        pause();
}
