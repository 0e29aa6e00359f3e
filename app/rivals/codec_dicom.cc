/* Rivals: DICOM's RLE and lossless JPEG, by DCMTK: what its encoders make of a data set with the picture. */
#include "rivals.h"

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcrledrg.h>
#include <dcmtk/dcmdata/dcrleerg.h>
#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmdata/dcuid.h>
#include <dcmtk/dcmjpeg/djdecode.h>
#include <dcmtk/dcmjpeg/djencode.h>
#include <dcmtk/dcmjpeg/djrplol.h>
#include <dcmtk/oflog/oflog.h>

#include <cstdio>
#include <exception>

namespace
{

void tell_library(char text[64])
{
    std::snprintf(text, 64, "DCMTK %s", OFFIS_DCMTK_VERSION_STRING);
}

const char *find_obstacle(const struct codec *codec, const struct picture *p)
{
    if (p->columns > 65535 || p->rows > 65535) return "sides are up to 65535";
    if (p->channels != 1 && p->channels != 3) return "DICOM has 1 or 3 channels";
    return codec->variant == 1 && p->bits < 2 ? "lossless JPEG has at least 2 bits" : nullptr;
}

E_TransferSyntax syntax_of(const struct codec *codec)
{
    return codec->variant == 0 ? EXS_RLELossless : EXS_JPEGProcess14SV1;
}

bool note(struct job *job, const OFCondition &condition)
{
    if (condition.bad()) std::snprintf(job->note, sizeof job->note, "%s", condition.text());
    return condition.good();
}

bool prepare(struct job *)
{
    static bool is_registered;
    if (!is_registered) {
        OFLog::configure(OFLogger::OFF_LOG_LEVEL);
        DcmRLEEncoderRegistration::registerCodecs();
        DcmRLEDecoderRegistration::registerCodecs();
        DJEncoderRegistration::registerCodecs();
        DJDecoderRegistration::registerCodecs();
        is_registered = true;
    }
    return true;
}

/* The elements that describe the samples. */
void describe(DcmDataset &set, const struct picture *p)
{
    const bool is_grey = p->channels == 1;
    set.putAndInsertUint16(DCM_Rows, (Uint16)p->rows);
    set.putAndInsertUint16(DCM_Columns, (Uint16)p->columns);
    set.putAndInsertUint16(DCM_SamplesPerPixel, (Uint16)p->channels);
    set.putAndInsertString(DCM_PhotometricInterpretation, is_grey ? "MONOCHROME2" : "RGB");
    if (!is_grey) set.putAndInsertUint16(DCM_PlanarConfiguration, 0);
    set.putAndInsertUint16(DCM_BitsAllocated, p->bits > 8 ? 16 : 8);
    set.putAndInsertUint16(DCM_BitsStored, (Uint16)p->bits);
    set.putAndInsertUint16(DCM_HighBit, (Uint16)(p->bits - 1));
    set.putAndInsertUint16(DCM_PixelRepresentation, 0);
    set.putAndInsertString(DCM_SOPClassUID, UID_SecondaryCaptureImageStorage);
    set.putAndInsertString(DCM_SOPInstanceUID, "1.2.3.4");
}

/* A data set's pixel data. */
DcmPixelData *pixel_data(DcmDataset &set)
{
    DcmElement *element = nullptr;
    return set.findAndGetElement(DCM_PixelData, element).good() ? dynamic_cast<DcmPixelData *>(element) : nullptr;
}

/* Takes the fragments, each with its padding to an even count. The first item is the offset table. */
bool take_fragments(struct job *job, DcmPixelSequence *sequence)
{
    job->coded.count = 0;
    for (unsigned long i = 1; i < sequence->card(); i++) {
        DcmPixelItem *item = nullptr;
        Uint8 *data = nullptr;
        if (!note(job, sequence->getItem(item, i)) || !note(job, item->getUint8Array(data))) return false;
        if (!bytes_append(&job->coded, data, item->getLength())) return false;
    }
    return sequence->card() == 2; /* one fragment: decode() relies on it */
}

bool encode_set(struct job *job)
{
    const struct picture *const p = job->picture;
    DcmDataset set;
    describe(set, p);
    const OFCondition inserted =
        p->bits > 8
            ? set.putAndInsertUint16Array(DCM_PixelData, reinterpret_cast<const Uint16 *>(p->samples), p->bytes / 2)
            : set.putAndInsertUint8Array(DCM_PixelData, p->samples, p->bytes);
    const DJ_RPLossless lossless;
    const DcmRepresentationParameter *const parameter = job->codec->variant == 0 ? nullptr : &lossless;
    const E_TransferSyntax syntax = syntax_of(job->codec);
    if (!note(job, inserted) || !note(job, set.chooseRepresentation(syntax, parameter))) return false;
    DcmPixelSequence *sequence = nullptr;
    DcmPixelData *const pixels = pixel_data(set);
    return pixels && note(job, pixels->getEncapsulatedRepresentation(syntax, parameter, sequence)) &&
           take_fragments(job, sequence);
}

bool decode_set(struct job *job)
{
    const struct picture *const p = job->picture;
    DcmDataset set;
    describe(set, p);
    DcmPixelSequence *const sequence = new DcmPixelSequence(DCM_PixelSequenceTag);
    sequence->insert(new DcmPixelItem(DCM_PixelItemTag));
    DcmOffsetList offsets;
    OFCondition condition = sequence->storeCompressedFrame(offsets, job->coded.data, (Uint32)job->coded.count, 0);
    DcmPixelData *const pixels = new DcmPixelData(DCM_PixelData);
    pixels->putOriginalRepresentation(syntax_of(job->codec), nullptr, sequence);
    if (condition.good()) condition = set.insert(pixels, OFTrue);
    if (condition.good()) condition = set.chooseRepresentation(EXS_LittleEndianExplicit, nullptr);
    if (!note(job, condition)) return false;
    const Uint16 *words = nullptr;
    const Uint8 *octets = nullptr;
    unsigned long count = 0;
    condition = p->bits > 8 ? set.findAndGetUint16Array(DCM_PixelData, words, &count)
                            : set.findAndGetUint8Array(DCM_PixelData, octets, &count);
    if (!note(job, condition) || count * (p->bits > 8 ? 2 : 1) < p->bytes) return false;
    memcpy(job->samples, p->bits > 8 ? static_cast<const void *>(words) : octets, p->bytes);
    return true;
}

/* DCMTK itself throws nothing, but allocations do. */
bool call(bool (*what)(struct job *), struct job *job)
{
    try {
        return what(job);
    } catch (const std::exception &error) {
        std::snprintf(job->note, sizeof job->note, "%s", error.what());
        return false;
    }
}

bool encode(struct job *job)
{
    return call(encode_set, job);
}

bool decode(struct job *job)
{
    return call(decode_set, job);
}

} // namespace

const struct codec_calls dicom_calls = {tell_library, find_obstacle, prepare, encode, decode, nullptr};
