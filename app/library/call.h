/* Calls of the public interface where there is enough of a stack for them, whatever the caller has left of its own. */
#ifndef TSR_APP_LIBRARY_CALL_H
#define TSR_APP_LIBRARY_CALL_H

#include "tessera.h"

/* A call with its arguments, which were checked. run is one of the file's functions; it finds what it needs in the
 * other fields. */
struct tsr_call {
    enum tsr_status (*run)(const struct tsr_call *call);
    struct tsr_engine *engine;
    struct tsr_reader *reader;
    bool takes_turn; /* run is called with the reader's lock */
    const struct tsr_data_source *source;
    const struct tsr_data_sink *sink;
    const struct tsr_image *image;
    const struct tsr_region *region;
    const void *options; /* of the function's kind */
    uint32_t member, frame;
    int choice;      /* a transfer syntax, a listing, a coder, a yes */
    uint64_t offset; /* bytes count from here */
    const void *in;
    void *out; /* of the function's kind */
    size_t count;
    size_t row_bytes; /* from a row of a raster to the next one; 0: no gaps */
    size_t *got;
    struct tsr_report *report;
    struct tsr_error *error;
};

/* Runs a call, and returns what it returns. Errors besides those: TSR_ERROR_LIMIT (no thread with a large stack can be
 * started). */
enum tsr_status tsr_run_call(const struct tsr_call *call);

/* A call of a reader's function that takes its turn, with the arguments that all of them have. */
struct tsr_call tsr_call_of_reader(struct tsr_reader *reader, enum tsr_status (*run)(const struct tsr_call *call),
                                   uint32_t member, struct tsr_error *error);

/* Asks a caller's function, on the thread that has called the library where that is known (tsr_call_back). */
bool tsr_ask(bool (*question)(void *context), void *context);

#endif
