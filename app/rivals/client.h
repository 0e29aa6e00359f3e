/* What tessera asks its helper program tessera-rivals: sizes of PNG, JPEG-LS and JPEG files of a picture. */
#ifndef TSR_APP_RIVALS_CLIENT_H
#define TSR_APP_RIVALS_CLIENT_H

#include "protocol.h"

struct rivals; /* the program, and those of its processes that nobody uses */
struct rival;  /* one of its processes, for one thread at a time */

/* Looks for the program: where the environment's TESSERA_RIVALS says; else beside the running program; else where both
 * are installed. NULL: it was not found. */
struct rivals *rivals_find(void);
void rivals_close(struct rivals *rivals);

/* A process, started where all are in use. name is what errors begin with, and must outlive the use. Without a program
 * (NULL) *rival is NULL, and the calls below give sizes of 0. */
enum tsr_status rivals_take(struct rivals *rivals, const char *name, struct rival **rival, struct tsr_error *error);
/* Another thread may use it. */
void rivals_give(struct rivals *rivals, struct rival *rival);

/* The picture that the requests after this one are about: interleaved samples of 1 to 16 bits, either in words or, up
 * to 8 bits, in bytes. */
struct rival_picture {
    uint32_t columns, rows;
    int channels, bits;
    const uint16_t *words; /* or NULL */
    const uint8_t *bytes;
};

/* Errors: TSR_ERROR_LIMIT where the process cannot be started or has no memory; TSR_ERROR_INTERNAL where it ends or
 * gives an answer that is not one. The process is not used again then. Sizes of 0: see protocol.h. */
enum tsr_status rival_show(struct rival *rival, const struct rival_picture *picture, struct tsr_error *error);
enum tsr_status rival_png_bytes(struct rival *rival, uint64_t *bytes, struct tsr_error *error);
enum tsr_status rival_jpeg_ls_bytes(struct rival *rival, uint64_t *bytes, struct tsr_error *error);
enum tsr_status rival_jpeg_at_psnr(struct rival *rival, double psnr_db, struct jpeg_size *size,
                                   struct tsr_error *error);

#endif
