/* Published limits of irreversible compression; see the header. */
#include "limits.h"

#include <stddef.h>
#include <string.h>

/* The highest that a society has published: German consensus conference, RoeFo 2009 (RF, XA); Canadian Association of
 * Radiologists 2008 (all others). app/cli/LOSS.md has both. */
static const struct {
    char modality[4];
    uint32_t ratio;
} limits[] = {
    {"CR", 30}, {"CT", 15}, {"DX", 30}, {"MG", 25}, {"MR", 24}, {"NM", 11}, {"RF", 6}, {"US", 12}, {"XA", 6},
};

uint32_t tsr_ratio_limit(const char *modality)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (strcmp(limits[i].modality, modality) == 0) return limits[i].ratio;
    return 0;
}
