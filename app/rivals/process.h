/* A process of tessera-rivals, and the lines that go to it and come from it. Of the client alone. */
#ifndef TSR_APP_RIVALS_PROCESS_H
#define TSR_APP_RIVALS_PROCESS_H

#include "protocol.h"

#include <sys/types.h>

struct process {
    pid_t id;
    int socket; /* negative: there is no process */
    /* Of CLOCK_MONOTONIC in seconds: a call that waits longer fails. 0: none. */
    double deadline;
    bool is_late; /* the last failure was the deadline */
    size_t held;  /* bytes of kept that were received and not taken yet */
    char kept[4096];
};

/* Seconds of CLOCK_MONOTONIC. */
double process_now(void);

/* Starts the program at path. Returns 0 or an errno. */
int process_start(struct process *process, const char *path);

/* Ends the process and waits for its end. Returns the status of waitpid(). With force by SIGKILL, which does nothing
 * to a process that has ended; else by closing its input. */
int process_end(struct process *process, bool force);

/* Each returns false if the process has ended or the deadline has passed. */
bool process_send(struct process *process, const void *bytes, size_t size);
bool process_receive(struct process *process, void *bytes, size_t size);
/* A line without its end. What does not fit in size characters is cut off. */
bool process_receive_line(struct process *process, char *line, size_t size);

#endif
