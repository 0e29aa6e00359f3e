/* What compare reads of a file's header: what groups images, and how they are shown. */
#ifndef TSR_APP_CLI_COMPARE_FIELDS_H
#define TSR_APP_CLI_COMPARE_FIELDS_H

#include "app/tessera.h"

struct fields {
    char modality[17];        /* of DICOM, else the format: "PNG" */
    char transfer_syntax[65]; /* its name; empty: no DICOM */
    char series[65];          /* Series Instance UID; empty: none */
    bool is_encapsulated;
    bool may_show_names;   /* Burned In Annotation, ultrasound, secondary captures */
    uint64_t header_bytes; /* before the pixel data */
};

/* Of an original's first member. Where the header cannot be read, the fields are empty. */
void read_fields(struct tsr_reader *reader, enum tsr_kind kind, struct fields *fields);

#endif
