/* Header fields; see fields.h. */
#include "fields.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    TRANSFER_SYNTAX = 0x00020010,
    SOP_CLASS = 0x00080016,
    MODALITY = 0x00080060,
    SERIES_UID = 0x0020000e,
    BURNED_IN = 0x00280301
};

static const struct syntax {
    const char *uid, *name;
    bool is_encapsulated;
} syntaxes[] = {
    {"1.2.840.10008.1.2", "implicit little endian", false},
    {"1.2.840.10008.1.2.1", "explicit little endian", false},
    {"1.2.840.10008.1.2.1.99", "deflated", false},
    {"1.2.840.10008.1.2.2", "explicit big endian", false},
    {"1.2.840.10008.1.2.4.50", "JPEG baseline", true},
    {"1.2.840.10008.1.2.4.51", "JPEG extended", true},
    {"1.2.840.10008.1.2.4.57", "JPEG lossless", true},
    {"1.2.840.10008.1.2.4.70", "JPEG lossless SV1", true},
    {"1.2.840.10008.1.2.4.80", "JPEG-LS lossless", true},
    {"1.2.840.10008.1.2.4.81", "JPEG-LS near-lossless", true},
    {"1.2.840.10008.1.2.4.90", "JPEG 2000 lossless", true},
    {"1.2.840.10008.1.2.4.91", "JPEG 2000", true},
    {"1.2.840.10008.1.2.4.110", "JPEG XL lossless", true},
    {"1.2.840.10008.1.2.4.112", "JPEG XL", true},
    {"1.2.840.10008.1.2.4.201", "HTJ2K lossless", true},
    {"1.2.840.10008.1.2.4.202", "HTJ2K lossless RPCL", true},
    {"1.2.840.10008.1.2.4.203", "HTJ2K", true},
    {"1.2.840.10008.1.2.5", "RLE", true},
};

/* The first of an element's values, without spaces and zeros at its ends; empty: there is none. */
static void read_text(const struct tsr_metadata *metadata, uint32_t tag, char *text, size_t room)
{
    text[0] = '\0';
    for (size_t i = 0; i < metadata->element_count; i++) {
        const struct tsr_element *const element = &metadata->elements[i];
        if (element->tag != tag || element->depth > 0 || !element->value) continue;
        const char *from = (const char *)element->value;
        size_t count = element->count;
        while (count > 0 && isspace((unsigned char)*from)) from++, count--;
        const char *const backslash = memchr(from, '\\', count);
        if (backslash) count = (size_t)(backslash - from);
        while (count > 0 && (isspace((unsigned char)from[count - 1]) || !from[count - 1])) count--;
        snprintf(text, room, "%.*s", (int)count, from);
        return;
    }
}

/* A modality is shown if it is one of the standard's (DICOM PS3.3 C.7.3.1.1.1): anything else could be a name. */
static void keep_modality(char text[17])
{
    static const char known[] = " AR ASMT AU BDUS BI BMD CFM CR CT CTPROTOCOL DG DMS DOC DX ECG EEG EMG EOG EPS ES FID "
                                "GM HC HD IO IOL IVOCT IVUS KER KO LEN LS MG MR M3D NM OAM OCT OP OPM OPT OPTBSV "
                                "OPTENF OPV OSS OT PA PLAN POS PR PT PX REG RESP RF RG RTDOSE RTIMAGE RTINTENT RTPLAN "
                                "RTRAD RTRECORD RTSEGANN RTSTRUCT RWV SC SEG SM SMR SR SRF STAIN TEXTUREMAP TG US VA "
                                "VL XA XAPROTOCOL XC ";
    char word[20];
    snprintf(word, sizeof word, " %s ", text);
    if (!text[0] || strchr(text, ' ') || !strstr(known, word)) snprintf(text, 17, "OT");
}

static void read_dicom(const struct tsr_metadata *metadata, struct fields *fields)
{
    static const char secondary[] = "1.2.840.10008.5.1.4.1.1.7";
    char uid[65], sop_class[65], burned_in[17];
    read_text(metadata, TRANSFER_SYNTAX, uid, sizeof uid);
    read_text(metadata, SOP_CLASS, sop_class, sizeof sop_class);
    read_text(metadata, BURNED_IN, burned_in, sizeof burned_in);
    read_text(metadata, MODALITY, fields->modality, sizeof fields->modality);
    read_text(metadata, SERIES_UID, fields->series, sizeof fields->series);
    keep_modality(fields->modality);
    snprintf(fields->transfer_syntax, sizeof fields->transfer_syntax, "another transfer syntax");
    for (size_t i = 0; i < sizeof syntaxes / sizeof syntaxes[0]; i++) {
        if (strcmp(uid, syntaxes[i].uid) != 0) continue;
        snprintf(fields->transfer_syntax, sizeof fields->transfer_syntax, "%s", syntaxes[i].name);
        fields->is_encapsulated = syntaxes[i].is_encapsulated;
    }
    if (!uid[0]) snprintf(fields->transfer_syntax, sizeof fields->transfer_syntax, "implicit little endian");
    const bool is_risky = strcmp(fields->modality, "US") == 0 || strcmp(fields->modality, "SC") == 0 ||
                          strncmp(sop_class, secondary, sizeof secondary - 1) == 0;
    fields->may_show_names = strcmp(burned_in, "YES") == 0 || (is_risky && strcmp(burned_in, "NO") != 0);
}

void read_fields(struct tsr_reader *reader, enum tsr_kind kind, struct fields *fields)
{
    static const char *const formats[TSR_KIND_COUNT] = {
        [TSR_KIND_OTHER] = "other", [TSR_KIND_PNG] = "PNG",     [TSR_KIND_PNM] = "PNM",
        [TSR_KIND_DICOM] = "OT",    [TSR_KIND_NIFTI] = "NIfTI", [TSR_KIND_Y4M] = "Y4M"};
    struct tsr_metadata *metadata = NULL;
    struct tsr_error ignored;
    memset(fields, 0, sizeof *fields);
    snprintf(fields->modality, sizeof fields->modality, "%s", formats[kind]);
    if (kind != TSR_KIND_DICOM || tsr_read_header(reader, 0, &metadata, &ignored) != TSR_OK) return;
    fields->header_bytes = metadata->byte_count;
    if (metadata->kind == TSR_KIND_DICOM) read_dicom(metadata, fields);
    tsr_metadata_free(metadata);
}
