/* What the model of elements has seen before it begins: facts of the DICOM standard. ELEMENTS.md 4. */
#include "elements_mix.h"

const char *const tsr_elements_seen[] = {
#include "elements_seen.inc"
    NULL};
