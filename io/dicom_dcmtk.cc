/* DICOM through DCMTK: the one C++ file. No exception leaves it. */
#include "dicom_file.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmdata/dcistrmb.h>
#include <dcmtk/dcmdata/dcistrmf.h>
#include <dcmtk/dcmdata/dcostrmb.h>
#include <dcmtk/dcmdata/dcwcache.h>
#include <dcmtk/oflog/oflog.h>

namespace
{

/* DCMTK's own messages would go to the terminal: the library never prints. */
void silence()
{
    static const bool silent = [] {
        OFLog::configure(OFLogger::OFF_LOG_LEVEL);
        return true;
    }();
    (void)silent;
}

long number_of(DcmItem &item, const DcmTagKey &tag)
{
    Uint16 value;
    if (item.findAndGetUint16(tag, value).good()) return value;
    Sint32 wide;
    if (item.findAndGetSint32(tag, wide).good()) return wide;
    return -1;
}

void text_of(DcmItem &item, const DcmTagKey &tag, char *out, size_t size)
{
    OFString value;
    if (item.findAndGetOFString(tag, value).bad()) value.clear();
    size_t length = value.length() < size - 1 ? value.length() : size - 1;
    while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\0')) length--;
    std::memcpy(out, value.c_str(), length);
    out[length] = '\0';
}

tsr_dicom_syntax syntax_of(const char *uid, const DcmXfer &read_as)
{
    if (!std::strcmp(uid, UID_DeflatedExplicitVRLittleEndianTransferSyntax)) return TSR_DICOM_DEFLATED;
    if (!std::strcmp(uid, UID_RLELosslessTransferSyntax)) return TSR_DICOM_RLE;
    if (!std::strcmp(uid, UID_JPEGProcess14TransferSyntax) || !std::strcmp(uid, UID_JPEGProcess14SV1TransferSyntax))
        return TSR_DICOM_JPEG_LOSSLESS;
    if (!std::strcmp(uid, UID_JPEGLSLosslessTransferSyntax)) return TSR_DICOM_JPEG_LS;
    const bool native_uid = uid[0] == '\0' || !std::strcmp(uid, UID_LittleEndianImplicitTransferSyntax) ||
                            !std::strcmp(uid, UID_LittleEndianExplicitTransferSyntax) ||
                            !std::strcmp(uid, UID_BigEndianExplicitTransferSyntax);
    return native_uid && read_as.isNotEncapsulated() ? TSR_DICOM_NATIVE : TSR_DICOM_OTHER;
}

double real_of(DcmItem &item, const DcmTagKey &tag, double otherwise)
{
    Float64 value;
    return item.findAndGetFloat64(tag, value).good() ? value : otherwise;
}

void describe_item(DcmDataset &dataset, tsr_dicom *dicom)
{
    const DcmXfer read_as(dataset.getOriginalXfer());
    dicom->big_endian = read_as.isBigEndian();
    dicom->explicit_vr = read_as.isExplicitVR();
    dicom->columns = number_of(dataset, DCM_Columns);
    dicom->rows = number_of(dataset, DCM_Rows);
    dicom->frames = number_of(dataset, DCM_NumberOfFrames);
    dicom->samples = number_of(dataset, DCM_SamplesPerPixel);
    dicom->planar = number_of(dataset, DCM_PlanarConfiguration);
    dicom->bits_allocated = number_of(dataset, DCM_BitsAllocated);
    dicom->bits_stored = number_of(dataset, DCM_BitsStored);
    dicom->high_bit = number_of(dataset, DCM_HighBit);
    dicom->representation = number_of(dataset, DCM_PixelRepresentation);
    dicom->slope = real_of(dataset, DCM_RescaleSlope, 1);
    dicom->intercept = real_of(dataset, DCM_RescaleIntercept, 0);
    dicom->window_center = real_of(dataset, DCM_WindowCenter, 0);
    dicom->window_width = real_of(dataset, DCM_WindowWidth, 0);
    text_of(dataset, DCM_PhotometricInterpretation, dicom->photometric, sizeof dicom->photometric);
    text_of(dataset, DCM_Modality, dicom->modality, sizeof dicom->modality);
    text_of(dataset, DCM_SOPClassUID, dicom->sop_class, sizeof dicom->sop_class);
}

tsr_status guarded(tsr_error *error, tsr_status (*work)(void *), void *context)
{
    try {
        return work(context);
    } catch (const std::bad_alloc &) {
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to read DICOM");
    } catch (...) {
        return tsr_fail(error, TSR_ERROR_CORRUPT, "DCMTK cannot read it");
    }
}

struct describe_job {
    const char *path;
    const uint8_t *bytes;
    size_t size;
    tsr_dicom *dicom;
    tsr_error *error;
};

tsr_status describe_file(void *context)
{
    describe_job &job = *static_cast<describe_job *>(context);
    DcmInputFileStream stream(job.path);
    if (stream.status().bad()) return tsr_fail(job.error, TSR_ERROR_CORRUPT, "DCMTK: %s", stream.status().text());
    DcmFileFormat file;
    file.transferInit();
    const OFCondition condition =
        file.readUntilTag(stream, EXS_Unknown, EGL_noChange, DCM_MaxReadLength, DCM_PixelData);
    const offile_off_t at = stream.tell();
    file.transferEnd();
    text_of(*file.getMetaInfo(), DCM_TransferSyntaxUID, job.dicom->syntax_uid, sizeof job.dicom->syntax_uid);
    DcmDataset &dataset = *file.getDataset();
    job.dicom->syntax = syntax_of(job.dicom->syntax_uid, DcmXfer(dataset.getOriginalXfer()));
    if (job.dicom->syntax == TSR_DICOM_DEFLATED) {
        /* Where the deflated data set begins: behind the meta header. */
        DcmInputFileStream again(job.path);
        DcmMetaInfo meta;
        meta.transferInit();
        const OFCondition head = meta.read(again, EXS_Unknown, EGL_noChange, DCM_MaxReadLength);
        if (head.bad()) return tsr_fail(job.error, TSR_ERROR_CORRUPT, "DCMTK: %s", head.text());
        job.dicom->dataset_offset = static_cast<uint64_t>(again.tell());
        return TSR_OK;
    }
    if (condition.bad()) return tsr_fail(job.error, TSR_ERROR_CORRUPT, "DCMTK: %s", condition.text());
    job.dicom->value_offset = static_cast<uint64_t>(at);
    describe_item(dataset, job.dicom);
    return TSR_OK;
}

tsr_status describe_dataset(void *context)
{
    describe_job &job = *static_cast<describe_job *>(context);
    DcmInputBufferStream stream;
    stream.setBuffer(job.bytes, static_cast<offile_off_t>(job.size));
    stream.setEos();
    DcmDataset dataset;
    dataset.transferInit();
    const OFCondition condition =
        dataset.readUntilTag(stream, EXS_LittleEndianExplicit, EGL_noChange, DCM_MaxReadLength, DCM_PixelData);
    if (condition.bad()) return tsr_fail(job.error, TSR_ERROR_CORRUPT, "DCMTK: %s", condition.text());
    job.dicom->value_offset = static_cast<uint64_t>(stream.tell());
    describe_item(dataset, job.dicom);
    return TSR_OK;
}

/* ---- Lossy copies ---- */

/* Appends a value to a multi-valued element, or creates it. */
OFCondition append_value(DcmItem &item, const DcmTagKey &tag, const char *value)
{
    OFString values;
    item.findAndGetOFStringArray(tag, values);
    if (!values.empty()) values += '\\';
    values += value;
    return item.putAndInsertOFStringArray(tag, values);
}

/* The first value of Image Type becomes DERIVED, the others stay. */
OFCondition mark_derived(DcmItem &item)
{
    OFString type;
    item.findAndGetOFStringArray(DCM_ImageType, type);
    const size_t end = type.find('\\');
    const OFString rest = end == OFString_npos ? OFString("\\SECONDARY") : type.substr(end);
    return item.putAndInsertOFStringArray(DCM_ImageType, OFString("DERIVED") + rest);
}

OFCondition set_derivation(DcmDataset &dataset, const tsr_derivation &derivation)
{
    char ratio[17];
    std::snprintf(ratio, sizeof ratio, "%.4g", derivation.ratio);
    OFCondition result = dataset.putAndInsertString(DCM_LossyImageCompression, "01");
    if (result.good()) result = append_value(dataset, DCM_LossyImageCompressionRatio, ratio);
    if (result.good()) result = append_value(dataset, DCM_LossyImageCompressionMethod, "TESSERA");
    if (result.good()) result = mark_derived(dataset);
    if (result.good()) result = dataset.putAndInsertString(DCM_SOPInstanceUID, derivation.uid);
    OFString text;
    dataset.findAndGetOFStringArray(DCM_DerivationDescription, text);
    if (!text.empty()) text += "; ";
    text += OFString("coded with loss by Tessera, ratio ") + ratio;
    if (result.good() && text.length() <= 1024)
        result = dataset.putAndInsertOFStringArray(DCM_DerivationDescription, text);
    return result;
}

/* Writes an object in a transfer syntax, as often as the stream's buffer fills. */
OFCondition write_object(DcmObject &object, E_TransferSyntax syntax, std::vector<uint8_t> &out)
{
    std::vector<uint8_t> buffer(1 << 16);
    DcmOutputBufferStream stream(buffer.data(), static_cast<offile_off_t>(buffer.size()));
    DcmWriteCache cache;
    object.transferInit();
    OFCondition result = EC_Normal;
    do {
        result = object.write(stream, syntax, EET_ExplicitLength, &cache);
        void *filled = nullptr;
        offile_off_t length = 0;
        stream.flushBuffer(filled, length);
        const uint8_t *bytes = static_cast<const uint8_t *>(filled);
        out.insert(out.end(), bytes, bytes + length);
    } while (result == EC_StreamNotifyClient);
    object.transferEnd();
    return result;
}

struct derive_job {
    const char *path;
    const tsr_derivation *derivation;
    uint8_t **bytes;
    size_t *size;
    tsr_error *error;
};

tsr_status derive(void *context)
{
    derive_job &job = *static_cast<derive_job *>(context);
    DcmInputFileStream stream(job.path);
    DcmFileFormat file;
    file.transferInit();
    OFCondition result = file.readUntilTag(stream, EXS_Unknown, EGL_noChange, DCM_MaxReadLength, DCM_PixelData);
    file.transferEnd();
    DcmDataset &dataset = *file.getDataset();
    DcmMetaInfo &meta = *file.getMetaInfo();
    /* Reading stops at the pixel data's tag, or has taken an element above it along: that stays behind the pixels. */
    while (dataset.card() > 0 && dataset.getElement(dataset.card() - 1)->getTag() >= DCM_PixelData)
        delete dataset.remove(dataset.card() - 1);
    E_TransferSyntax syntax = dataset.getOriginalXfer();
    const bool has_meta = meta.card() > 0;
    if (syntax == EXS_DeflatedLittleEndianExplicit) {
        syntax = EXS_LittleEndianExplicit;
        if (result.good())
            result = meta.putAndInsertString(DCM_TransferSyntaxUID, UID_LittleEndianExplicitTransferSyntax);
    }
    if (result.good()) result = set_derivation(dataset, *job.derivation);
    if (result.good() && has_meta)
        result = meta.putAndInsertString(DCM_MediaStorageSOPInstanceUID, job.derivation->uid);
    std::vector<uint8_t> out;
    if (result.good() && has_meta)
        result = meta.computeGroupLengthAndPadding(EGL_recalcGL, EPD_noChange, META_HEADER_DEFAULT_TRANSFERSYNTAX,
                                                   EET_ExplicitLength);
    if (result.good() && has_meta) result = write_object(meta, META_HEADER_DEFAULT_TRANSFERSYNTAX, out);
    if (result.good())
        result = dataset.computeGroupLengthAndPadding(EGL_recalcGL, EPD_noChange, syntax, EET_ExplicitLength);
    if (result.good()) result = write_object(dataset, syntax, out);
    if (result.bad())
        return tsr_fail(job.error, TSR_ERROR_CORRUPT, "DCMTK cannot write its lossy header: %s", result.text());
    *job.bytes = static_cast<uint8_t *>(std::malloc(out.size() + 1));
    if (!*job.bytes) return tsr_fail(job.error, TSR_ERROR_LIMIT, "no memory for a header of %zu bytes", out.size());
    std::memcpy(*job.bytes, out.data(), out.size());
    *job.size = out.size();
    return TSR_OK;
}

} // namespace

extern "C" tsr_status tsr_dicom_derive(const char *path, const tsr_derivation *derivation, uint8_t **bytes,
                                       size_t *size, tsr_error *error)
{
    silence();
    *bytes = nullptr;
    const OFBool correct = dcmEnableAutomaticInputDataCorrection.get();
    dcmEnableAutomaticInputDataCorrection.set(OFFalse); /* odd values stay as they are */
    derive_job job = {path, derivation, bytes, size, error};
    const tsr_status status = guarded(error, derive, &job);
    dcmEnableAutomaticInputDataCorrection.set(correct);
    return status;
}

extern "C" tsr_status tsr_dicom_describe_file(const char *path, tsr_dicom *dicom, tsr_error *error)
{
    silence();
    std::memset(dicom, 0, sizeof *dicom);
    describe_job job = {path, nullptr, 0, dicom, error};
    return guarded(error, describe_file, &job);
}

extern "C" tsr_status tsr_dicom_describe_dataset(const uint8_t *dataset, size_t size, tsr_dicom *dicom,
                                                 tsr_error *error)
{
    silence();
    std::memset(dicom, 0, sizeof *dicom);
    describe_job job = {nullptr, dataset, size, dicom, error};
    return guarded(error, describe_dataset, &job);
}
