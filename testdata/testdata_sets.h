/* The parts of the set. Each function fills a folder below the current one. */
#ifndef TESTDATA_SETS_H
#define TESTDATA_SETS_H

void make_dicom(void);  /* dicom/ */
void make_png(void);    /* png/ */
void make_pnm(void);    /* pnm/ and odd/ */
void make_nifti(void);  /* nifti/ */
void make_y4m(void);    /* y4m/ */
void make_sparse(void); /* sparse/, which is a set of its own */
void make_drawn(void);  /* drawn/, too */
void make_other(void);  /* other/ */

#endif
