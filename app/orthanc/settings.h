/* The plugin's part of Orthanc's configuration. */
#ifndef TSR_ORTHANC_SETTINGS_H
#define TSR_ORTHANC_SETTINGS_H

#include "app/tessera.h"

enum { SETTINGS_SENTENCE = 512, SETTINGS_PATH = 1024 };

struct settings {
    char root[SETTINGS_PATH]; /* the folder of the storage area, absolute */
    int effort;
    struct tsr_engine_options engine;
};

/* Reads Orthanc's configuration, which is the text of a JSON object, and which Orthanc has read from place, a file or a
 * folder. Relative folders begin there, as Orthanc has it. False: sentence says what is wrong and what to do. */
bool settings_read(const char *configuration, const char *place, struct settings *settings,
                   char sentence[SETTINGS_SENTENCE]);

#endif
