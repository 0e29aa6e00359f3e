/* Published limits of irreversible compression; see the header. */
#include "limits.h"

#include <stddef.h>
#include <string.h>

/* TODO: the figures below are placeholders until each has its source: Royal College of Radiologists 2008, Canadian
 * Association of Radiologists 2011, German consensus conference 2009, European Society of Radiology 2011. */
static const struct {
    char modality[4];
    uint32_t ratio;
} limits[] = {
    {"CR", 10}, {"CT", 10}, {"DX", 10}, {"MG", 15}, {"MR", 7}, {"RF", 6}, {"US", 10}, {"XA", 6},
};

uint32_t tsr_ratio_limit(const char *modality)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (strcmp(limits[i].modality, modality) == 0) return limits[i].ratio;
    return 0;
}
