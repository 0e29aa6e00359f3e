/* How errors travel: a status as the return value, one sentence in the caller's struct tsr_error. */
#ifndef TSR_TRANSFORM_STATUS_H
#define TSR_TRANSFORM_STATUS_H

#include "app/tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills error (which may be null) from a format and returns status. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
enum tsr_status
tsr_fail(struct tsr_error *error, enum tsr_status status, const char *format, ...);

/* The same, with the offset in the input where the fault was noticed. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
enum tsr_status
tsr_fail_at(struct tsr_error *error, enum tsr_status status, uint64_t offset, const char *format, ...);

/* For a reason that the system has a number for: tsr_error.system. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
enum tsr_status
tsr_fail_as(struct tsr_error *error, enum tsr_status status, int reason, const char *format, ...);

/* A call of the system's has failed, errno says why: "cannot open NAME: no such file". Returns status, or
 * TSR_ERROR_LIMIT where memory or descriptors have run out. */
enum tsr_status tsr_fail_call(struct tsr_error *error, enum tsr_status status, const char *what, const char *name);

#ifdef __cplusplus
}
#endif

/* A refusal, which is no error: what is read is stored in another way. error's text is the reason. It stays inside the
 * library. */
#define TSR_DECLINED ((enum tsr_status)255)

/* Makes a refusal of an error, whose text and offset stay. */
static inline enum tsr_status tsr_decline(struct tsr_error *error)
{
    if (error) error->status = TSR_DECLINED;
    return TSR_DECLINED;
}

/* Forwards a status that is not TSR_OK. */
#define TSR_TRY(expression)                              \
    do {                                                 \
        const enum tsr_status try_status = (expression); \
        if (try_status != TSR_OK) return try_status;     \
    } while (0)

#endif
