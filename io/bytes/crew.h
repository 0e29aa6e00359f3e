/* Threads that help with long work. */
#ifndef TSR_IO_BYTES_CREW_H
#define TSR_IO_BYTES_CREW_H

/* run calls work(context, i) once for each i below count, and returns when all calls have returned. run NULL, as it is
 * at first: nobody helps. */
struct tsr_crew {
    void (*run)(void *pool, void (*work)(void *context, unsigned index), void *context, unsigned count);
    void *pool;
};

#endif
