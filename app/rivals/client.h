/* The client of the helper program tessera-rivals: sizes of PNG, JPEG-LS and JPEG files of a picture. */
#ifndef TSR_APP_RIVALS_CLIENT_H
#define TSR_APP_RIVALS_CLIENT_H

#include "protocol.h"

struct rivals; /* the program, and its processes that are not in use */
struct rival;  /* a process of the program, used by one thread at a time */

/* Looks for the program: at the path in the environment variable TESSERA_RIVALS; without that variable, beside the
 * running program, then in the libexec folder that belongs to the program's folder. NULL: not found. */
struct rivals *rivals_find(void);
void rivals_close(struct rivals *rivals);

/* Takes a process; starts one if all are in use. Errors begin with name, which must outlive the use. If rivals is NULL,
 * *rival becomes NULL, and the calls below give sizes of 0. Errors: as below. */
enum tsr_status rivals_take(struct rivals *rivals, const char *name, struct rival **rival, struct tsr_error *error);
/* Gives the process back for other threads. */
void rivals_give(struct rivals *rivals, struct rival *rival);

/* The picture that later requests are about: interleaved samples of 1 to 16 bits, in words, or, up to 8 bits, in bytes.
 */
struct rival_picture {
    uint32_t columns, rows;
    int channels, bits;
    const uint16_t *words; /* or NULL */
    const uint8_t *bytes;
};

/* Errors: TSR_ERROR_LIMIT (the process cannot be started or has no memory), TSR_ERROR_INTERNAL (the process ends, or
 * its answer is not valid). After an error the process is not used again. Sizes of 0: see protocol.h. */
enum tsr_status rival_show(struct rival *rival, const struct rival_picture *picture, struct tsr_error *error);
enum tsr_status rival_png_bytes(struct rival *rival, uint64_t *bytes, struct tsr_error *error);
enum tsr_status rival_jpeg_ls_bytes(struct rival *rival, uint64_t *bytes, struct tsr_error *error);
enum tsr_status rival_jpeg_at_psnr(struct rival *rival, double psnr_db, struct jpeg_size *size,
                                   struct tsr_error *error);

#endif
