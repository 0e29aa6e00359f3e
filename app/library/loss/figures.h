/* The loss of a file in figures. */
#ifndef TSR_APP_LIBRARY_FIGURES_H
#define TSR_APP_LIBRARY_FIGURES_H

#include "io/container/container.h"
#include "tessera_cli.h"

/* What header and proof say of a file's loss, for its report or its description. Numbers of files without loss are
 * negative, their windows none. */
struct tsr_told_loss {
    uint32_t range;
    double psnr_db, psnr_stored_db;
    int64_t max_error;
    uint32_t windows;
    struct tsr_window_loss window[TSR_REPORTED_WINDOWS];
};
void tsr_report_loss(const struct tsr_told_loss *loss, struct tsr_report *report);

void tsr_tell_loss(const struct tsr_header *header, const struct tsr_proof *proof, struct tsr_told_loss *loss);

#endif
