/* Calls that fail on demand: the linker's --wrap sends them here (CMakeLists.txt lists them). Each kind counts its
 * calls and fails at one of them, or from one on. */
#ifndef TSR_TESTS_IO_FAILING_CALLS_H
#define TSR_TESTS_IO_FAILING_CALLS_H

#include <stdbool.h>
#include <stddef.h>

enum call_kind { CALL_ALLOCATE, CALL_WRITE, CALL_READ, CALL_OPEN, CALL_SYNC, CALL_RENAME, CALL_PUT, CALL_KINDS };

/* How a call fails. Reads and writes know more ways than the others. */
enum call_fault { FAULT_ERROR, FAULT_SHORT, FAULT_INTERRUPTED, FAULT_END };

struct call_plan {
    long count; /* calls so far */
    long fails; /* the number of the call that fails, from 1; 0: none */
    bool lasts; /* all later ones fail too */
    enum call_fault fault;
    long failed; /* calls that have failed */
};
extern struct call_plan call_plans[CALL_KINDS];

/* The file system has no files without names. */
extern bool files_need_names;

/* Begins to count anew. */
void plan_calls(enum call_kind kind, long fails, bool lasts, enum call_fault fault);
void plan_no_failures(void);

/* Blocks that the library has allocated and not freed. */
long live_blocks(void);

#endif
