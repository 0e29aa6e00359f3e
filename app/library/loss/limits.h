/* Published limits of irreversible compression, by modality. They are facts that others have published; nobody has
 * approved what this program does. */
#ifndef TSR_APP_LIBRARY_LIMITS_H
#define TSR_APP_LIBRARY_LIMITS_H

#include <stdint.h>

/* The ratio above which a user is warned, for a modality (0008,0060): bytes of the samples as their bits allocated say
 * to bytes of what they became. 0: none is known. */
uint32_t tsr_ratio_limit(const char *modality);

#endif
