/* Calls that fail on demand. The linker's --wrap sends them here (CMakeLists.txt lists them). Each kind counts its
 * calls and fails at one of them, or from one of them on. */
#ifndef TSR_TESTS_IO_FAILING_CALLS_H
#define TSR_TESTS_IO_FAILING_CALLS_H

#include <stdbool.h>
#include <stddef.h>

enum call_kind { CALL_ALLOCATE, CALL_WRITE, CALL_READ, CALL_OPEN, CALL_SYNC, CALL_RENAME, CALL_PUT, CALL_KINDS };

/* How a call fails. Only reads and writes have other faults than FAULT_ERROR. */
enum call_fault { FAULT_ERROR, FAULT_SHORT, FAULT_INTERRUPTED, FAULT_END };

struct call_plan {
    long count; /* number of calls so far */
    long fails; /* the number of the call that fails, from 1; 0: no call fails */
    bool lasts; /* all later calls fail, too */
    enum call_fault fault;
    long failed; /* number of calls that have failed */
};
extern struct call_plan call_plans[CALL_KINDS];

/* Makes the file system refuse files without names (O_TMPFILE). */
extern bool files_need_names;

/* NULL, or called once, before the next files are exchanged. */
extern void (*before_exchange)(void);

/* Resets the counts of a kind and sets how its calls fail. */
void plan_calls(enum call_kind kind, long fails, bool lasts, enum call_fault fault);
void plan_no_failures(void);

/* The number of blocks that the library has allocated and not freed. */
long live_blocks(void);

#endif
