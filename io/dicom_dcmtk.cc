/* DICOM through DCMTK: the one C++ file. No exception leaves it. */
#include "dicom_file.h"

#include <algorithm>
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
#include <dcmtk/dcmdata/dcpixel.h>
#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>
#include <dcmtk/dcmdata/dcrledrg.h>
#include <dcmtk/dcmdata/dcrleerg.h>
#include <dcmtk/dcmjpeg/djdecode.h>
#include <dcmtk/dcmjpeg/djencode.h>
#include <dcmtk/dcmjpeg/djrplol.h>
#include <dcmtk/oflog/appender.h>
#include <dcmtk/oflog/logger.h>
#include <dcmtk/oflog/oflog.h>

namespace
{

/* DCMTK's own messages would go to the terminal: the library never prints. */
void silence()
{
    static const bool silent = [] {
        OFLog::configure(OFLogger::OFF_LOG_LEVEL);
        dcmEnableAutomaticInputDataCorrection.set(OFFalse); /* odd values stay as they are */
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
    if (!std::strcmp(uid, UID_JPEGProcess14TransferSyntax)) return TSR_DICOM_JPEG_LOSSLESS;
    if (!std::strcmp(uid, UID_JPEGProcess14SV1TransferSyntax)) return TSR_DICOM_JPEG_SV1;
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

/* DCMTK reads sequences within sequences by recursion, 1.5 KB of stack a level, and a file of 100 KB may nest them so
 * deep that the stack ends. This stream fails for good as soon as it is read from too deep below where it was made. */
template <class Stream> class shallow : public Stream
{
  public:
    using Stream::Stream;
    OFBool good() const override
    {
        return !is_deep() && Stream::good();
    }
    OFCondition status() const override
    {
        return is_deep() ? EC_InvalidStream : Stream::status();
    }
    OFBool eos() override
    {
        return is_deep() || Stream::eos();
    }
    offile_off_t avail() override
    {
        return is_deep() ? 0 : Stream::avail();
    }
    offile_off_t read(void *bytes, offile_off_t size) override
    {
        return is_deep() ? 0 : Stream::read(bytes, size);
    }
    offile_off_t skip(offile_off_t size) override
    {
        return is_deep() ? 0 : Stream::skip(size);
    }
    bool was_deep() const
    {
        return was_deep_;
    }

  private:
    static constexpr uintptr_t limit = 256 << 10; /* about 180 levels; real files have a dozen */
    static uintptr_t stack_place()
    {
        return reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    }
    bool is_deep() const
    {
        const uintptr_t now = stack_place(), depth = now < base_ ? base_ - now : now - base_;
        was_deep_ = was_deep_ || depth > limit;
        return was_deep_;
    }
    const uintptr_t base_ = stack_place();
    mutable bool was_deep_ = false;
};

/* Who reads it first has to load it. */
tsr_status load_dictionary(void *)
{
    dcmDataDict.rdlock();
    dcmDataDict.rdunlock();
    return TSR_OK;
}

tsr_status too_deep(tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "its sequences are nested too deep");
}

struct describe_job {
    const char *path;
    const uint8_t *bytes;
    size_t size;
    tsr_dicom *dicom;
    tsr_error *error;
    bool is_whole;
};

tsr_status describe_file(void *context)
{
    describe_job &job = *static_cast<describe_job *>(context);
    shallow<DcmInputFileStream> stream(job.path);
    if (stream.status().bad()) return tsr_fail(job.error, TSR_ERROR_CORRUPT, "DCMTK: %s", stream.status().text());
    DcmFileFormat file;
    file.transferInit();
    const OFCondition condition =
        file.readUntilTag(stream, EXS_Unknown, EGL_noChange, DCM_MaxReadLength, DCM_PixelData);
    if (stream.was_deep()) return too_deep(job.error);
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
    shallow<DcmInputBufferStream> stream;
    stream.setBuffer(job.bytes, static_cast<offile_off_t>(job.size));
    stream.setEos();
    DcmDataset dataset;
    dataset.transferInit();
    const OFCondition condition =
        dataset.readUntilTag(stream, EXS_LittleEndianExplicit, EGL_noChange, DCM_MaxReadLength, DCM_PixelData);
    if (stream.was_deep()) return too_deep(job.error);
    if (condition.bad()) return tsr_fail(job.error, TSR_ERROR_CORRUPT, "DCMTK: %s", condition.text());
    job.dicom->value_offset = static_cast<uint64_t>(stream.tell());
    describe_item(dataset, job.dicom);
    return TSR_OK;
}

tsr_status describe_memory(void *context)
{
    describe_job &job = *static_cast<describe_job *>(context);
    shallow<DcmInputBufferStream> stream;
    stream.setBuffer(job.bytes, static_cast<offile_off_t>(job.size));
    if (job.is_whole) stream.setEos();
    DcmFileFormat file;
    file.transferInit();
    const OFCondition condition =
        file.readUntilTag(stream, EXS_Unknown, EGL_noChange, DCM_MaxReadLength, DCM_PixelData);
    file.transferEnd();
    if (stream.was_deep()) return too_deep(job.error);
    if (condition.bad()) return tsr_fail(job.error, TSR_ERROR_CORRUPT, "DCMTK: %s", condition.text());
    text_of(*file.getMetaInfo(), DCM_TransferSyntaxUID, job.dicom->syntax_uid, sizeof job.dicom->syntax_uid);
    DcmDataset &dataset = *file.getDataset();
    job.dicom->syntax = syntax_of(job.dicom->syntax_uid, DcmXfer(dataset.getOriginalXfer()));
    job.dicom->value_offset = static_cast<uint64_t>(stream.tell());
    describe_item(dataset, job.dicom);
    return TSR_OK;
}

/* ---- Lossy copies ---- */

unsigned long count_values(DcmItem &item, const DcmTagKey &tag)
{
    DcmElement *element = nullptr;
    return item.findAndGetElement(tag, element).good() && element->getLength() > 0 ? element->getVM() : 0;
}

/* Makes a value the one behind so many earlier ones; those that are missing are empty. */
OFCondition append_value(DcmItem &item, const DcmTagKey &tag, unsigned long earlier, const char *value)
{
    OFString values;
    item.findAndGetOFStringArray(tag, values);
    for (unsigned long count = std::max(count_values(item, tag), 1ul); count <= earlier; count++) values += '\\';
    values += value;
    return item.putAndInsertOFStringArray(tag, values);
}

/* Ratios and methods belong together, first to first (PS3.3 C.7.6.1.1.5.2): a loss that had only one of them, or none,
 * keeps its place. */
OFCondition append_loss(DcmItem &item, const char *ratio)
{
    OFString lossy;
    item.findAndGetOFString(DCM_LossyImageCompression, lossy);
    const unsigned long earlier =
        std::max({count_values(item, DCM_LossyImageCompressionRatio),
                  count_values(item, DCM_LossyImageCompressionMethod), lossy == "01" ? 1ul : 0ul});
    OFCondition result = append_value(item, DCM_LossyImageCompressionRatio, earlier, ratio);
    if (result.good()) result = append_value(item, DCM_LossyImageCompressionMethod, earlier, "TESSERA");
    if (result.good()) result = item.putAndInsertString(DCM_LossyImageCompression, "01");
    return result;
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
    OFCondition result = append_loss(dataset, ratio);
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
    shallow<DcmInputFileStream> stream(job.path);
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

/* ---- Encapsulated files ---- */

/* Codecs go on after damage, and only warn of it: samples that they made up must not pass for the file's. */
class warning_counter : public dcmtk::log4cplus::Appender
{
  public:
    ~warning_counter() override
    {
        destructorImpl();
    }
    void close() override
    {
    }
    static thread_local unsigned count;

  protected:
    void append(const dcmtk::log4cplus::spi::InternalLoggingEvent &) override
    {
        count++;
    }
};
thread_local unsigned warning_counter::count = 0;

void count_warnings()
{
    const dcmtk::log4cplus::SharedAppenderPtr counter(new warning_counter);
    for (const char *name : {"dcmtk.dcmdata", "dcmtk.dcmjpeg"}) {
        dcmtk::log4cplus::Logger logger = dcmtk::log4cplus::Logger::getInstance(name);
        logger.setAdditivity(false);
        logger.setLogLevel(OFLogger::WARN_LOG_LEVEL);
        logger.addAppender(counter);
    }
}

void register_codecs()
{
    static const bool registered = [] {
        count_warnings();
        DcmRLEDecoderRegistration::registerCodecs();
        DcmRLEEncoderRegistration::registerCodecs();
        DJDecoderRegistration::registerCodecs(EDC_never);
        DJEncoderRegistration::registerCodecs();
        return true;
    }();
    (void)registered;
}

struct decode_job {
    const char *path;
    const tsr_dicom *dicom;
    tsr_dicom_decoded *decoded;
    tsr_error *error;
};

/* The fragments, if there is one for each frame and nothing unusual about them. */
tsr_fragment *list_fragments(DcmDataset &dataset, const tsr_dicom &dicom)
{
    DcmElement *element = nullptr;
    if (dataset.findAndGetElement(DCM_PixelData, element).bad()) return nullptr;
    DcmPixelData *pixels = OFdynamic_cast(DcmPixelData *, element);
    DcmPixelSequence *sequence = nullptr;
    if (!pixels || pixels->getEncapsulatedRepresentation(dataset.getOriginalXfer(), nullptr, sequence).bad())
        return nullptr;
    const unsigned long frames = dicom.frames > 0 ? static_cast<unsigned long>(dicom.frames) : 1,
                        items = sequence->card();
    if (items != frames + 1) return nullptr;
    tsr_fragment *fragments = static_cast<tsr_fragment *>(std::calloc(frames, sizeof *fragments));
    if (!fragments) throw std::bad_alloc();
    uint64_t at = dicom.value_offset;
    for (unsigned long i = 0; i < items; i++) {
        DcmPixelItem *item = nullptr;
        if (sequence->getItem(item, i).bad()) break;
        const uint64_t size = item->getLength();
        if (i > 0) fragments[i - 1] = {at + 8, size};
        at += 8 + size;
    }
    return fragments;
}

tsr_status decode_file(void *context)
{
    decode_job &job = *static_cast<decode_job *>(context);
    shallow<DcmInputFileStream> stream(job.path);
    DcmFileFormat file;
    file.transferInit();
    OFCondition result = file.read(stream, EXS_Unknown, EGL_noChange, DCM_MaxReadLength);
    file.transferEnd();
    if (stream.was_deep()) return too_deep(job.error);
    DcmDataset &dataset = *file.getDataset();
    if (result.good()) job.decoded->fragments = list_fragments(dataset, *job.dicom);
    const unsigned warnings = warning_counter::count;
    if (result.good()) result = dataset.chooseRepresentation(EXS_LittleEndianExplicit, nullptr);
    if (result.good() && warning_counter::count != warnings)
        return tsr_fail(job.error, TSR_ERROR_CORRUPT, "its coded frames are damaged");
    if (result.good() && !dataset.canWriteXfer(EXS_LittleEndianExplicit)) result = EC_CannotChangeRepresentation;
    if (result.good()) {
        dataset.removeAllButCurrentRepresentations();
        result = file.getMetaInfo()->putAndInsertString(DCM_TransferSyntaxUID, UID_LittleEndianExplicitTransferSyntax);
    }
    std::vector<uint8_t> out;
    DcmMetaInfo &meta = *file.getMetaInfo();
    if (result.good())
        result = meta.computeGroupLengthAndPadding(EGL_recalcGL, EPD_noChange, META_HEADER_DEFAULT_TRANSFERSYNTAX,
                                                   EET_ExplicitLength);
    if (result.good()) result = write_object(meta, META_HEADER_DEFAULT_TRANSFERSYNTAX, out);
    job.decoded->dataset_offset = out.size();
    if (result.good()) result = write_object(dataset, EXS_LittleEndianExplicit, out);
    if (result.bad()) return tsr_fail(job.error, TSR_ERROR_CORRUPT, "DCMTK cannot decode it: %s", result.text());
    job.decoded->bytes = static_cast<uint8_t *>(std::malloc(out.size() + 1));
    if (!job.decoded->bytes) return tsr_fail(job.error, TSR_ERROR_LIMIT, "no memory for %zu bytes", out.size());
    std::memcpy(job.decoded->bytes, out.data(), out.size());
    job.decoded->size = out.size();
    return TSR_OK;
}

struct encode_job {
    const tsr_image *image;
    tsr_dicom_syntax syntax;
    const uint8_t *raster;
    uint8_t **stream;
    size_t *size;
    tsr_error *error;
};

OFCondition put_pixels(DcmDataset &dataset, const tsr_image &image, const uint8_t *raster)
{
    const unsigned long samples = static_cast<unsigned long>(tsr_frame_bits(&image) / image.bits_allocated);
    if (image.bits_allocated == 8) return dataset.putAndInsertUint8Array(DCM_PixelData, raster, samples);
    std::vector<Uint16> words(samples);
    for (unsigned long i = 0; i < samples; i++) words[i] = static_cast<Uint16>(raster[2 * i] | raster[2 * i + 1] << 8);
    return dataset.putAndInsertUint16Array(DCM_PixelData, words.data(), samples);
}

/* A data set with one frame, and nothing in it but what the codecs look at. */
OFCondition put_frame(DcmDataset &dataset, const tsr_image &image, const uint8_t *raster)
{
    const struct {
        DcmTagKey tag;
        unsigned value;
    } numbers[] = {{DCM_SamplesPerPixel, image.components},
                   {DCM_PlanarConfiguration, image.planar},
                   {DCM_Rows, image.rows},
                   {DCM_Columns, image.columns},
                   {DCM_BitsAllocated, image.bits_allocated},
                   {DCM_BitsStored, image.bits_stored},
                   {DCM_HighBit, image.high_bit},
                   {DCM_PixelRepresentation, image.is_signed}};
    OFCondition result =
        dataset.putAndInsertString(DCM_PhotometricInterpretation, image.components == 3 ? "RGB" : "MONOCHROME2");
    for (const auto &number : numbers)
        if (result.good()) result = dataset.putAndInsertUint16(number.tag, static_cast<Uint16>(number.value));
    if (result.good()) result = put_pixels(dataset, image, raster);
    return result;
}

/* Bytes of a stream up to its last marker: JPEG's end of image; RLE has none. */
size_t stream_size(tsr_dicom_syntax syntax, const uint8_t *bytes, size_t size)
{
    if (syntax == TSR_DICOM_RLE) return size;
    while (size >= 2 && !(bytes[size - 2] == 0xff && bytes[size - 1] == 0xd9)) size--;
    return size;
}

tsr_status encode_frame(void *context)
{
    encode_job &job = *static_cast<encode_job *>(context);
    DcmDataset dataset;
    const DJ_RPLossless jpeg;
    E_TransferSyntax syntax = EXS_RLELossless;
    const DcmRepresentationParameter *parameter = nullptr;
    if (job.syntax == TSR_DICOM_JPEG_LOSSLESS || job.syntax == TSR_DICOM_JPEG_SV1) {
        syntax = job.syntax == TSR_DICOM_JPEG_SV1 ? EXS_JPEGProcess14SV1 : EXS_JPEGProcess14;
        parameter = &jpeg;
    }
    OFCondition result = put_frame(dataset, *job.image, job.raster);
    if (result.good()) result = dataset.chooseRepresentation(syntax, parameter);
    DcmElement *element = nullptr;
    if (result.good()) result = dataset.findAndGetElement(DCM_PixelData, element);
    DcmPixelData *pixels = OFdynamic_cast(DcmPixelData *, element);
    DcmPixelSequence *sequence = nullptr;
    DcmPixelItem *item = nullptr;
    Uint8 *bytes = nullptr;
    if (result.good() && !pixels) result = EC_CorruptedData;
    if (result.good()) result = pixels->getEncapsulatedRepresentation(syntax, parameter, sequence);
    if (result.good()) result = sequence->getItem(item, 1);
    if (result.good()) result = item->getUint8Array(bytes);
    if (result.bad() || !bytes || sequence->card() != 2)
        return tsr_fail(job.error, TSR_ERROR_CORRUPT, "DCMTK cannot encode a frame: %s", result.text());
    *job.size = stream_size(job.syntax, bytes, item->getLength());
    *job.stream = static_cast<uint8_t *>(std::malloc(*job.size + 1));
    if (!*job.stream) return tsr_fail(job.error, TSR_ERROR_LIMIT, "no memory for %zu bytes", *job.size);
    std::memcpy(*job.stream, bytes, *job.size);
    return TSR_OK;
}

} // namespace

extern "C" tsr_status tsr_dicom_decode_file(const char *path, const tsr_dicom *dicom, tsr_dicom_decoded *decoded,
                                            tsr_error *error)
{
    silence();
    register_codecs();
    std::memset(decoded, 0, sizeof *decoded);
    decode_job job = {path, dicom, decoded, error};
    const tsr_status status = guarded(error, decode_file, &job);
    if (status != TSR_OK) tsr_dicom_decoded_free(decoded);
    return status;
}

extern "C" void tsr_dicom_decoded_free(tsr_dicom_decoded *decoded)
{
    std::free(decoded->bytes);
    std::free(decoded->fragments);
    std::memset(decoded, 0, sizeof *decoded);
}

extern "C" tsr_status tsr_dicom_encode_frame(const tsr_image *image, tsr_dicom_syntax syntax, const uint8_t *raster,
                                             uint8_t **stream, size_t *size, tsr_error *error)
{
    silence();
    register_codecs();
    *stream = nullptr;
    *size = 0;
    encode_job job = {image, syntax, raster, stream, size, error};
    return guarded(error, encode_frame, &job);
}

extern "C" tsr_status tsr_dicom_derive(const char *path, const tsr_derivation *derivation, uint8_t **bytes,
                                       size_t *size, tsr_error *error)
{
    silence();
    *bytes = nullptr;
    derive_job job = {path, derivation, bytes, size, error};
    return guarded(error, derive, &job);
}

extern "C" void tsr_dicom_load_dictionary(void)
{
    silence();
    guarded(nullptr, load_dictionary, nullptr);
}

extern "C" tsr_status tsr_dicom_describe_file(const char *path, tsr_dicom *dicom, tsr_error *error)
{
    silence();
    std::memset(dicom, 0, sizeof *dicom);
    describe_job job = {path, nullptr, 0, dicom, error, true};
    return guarded(error, describe_file, &job);
}

extern "C" tsr_status tsr_dicom_describe_dataset(const uint8_t *dataset, size_t size, tsr_dicom *dicom,
                                                 tsr_error *error)
{
    silence();
    std::memset(dicom, 0, sizeof *dicom);
    describe_job job = {nullptr, dataset, size, dicom, error, true};
    return guarded(error, describe_dataset, &job);
}

extern "C" tsr_status tsr_dicom_describe_memory(const uint8_t *bytes, size_t size, bool is_whole, tsr_dicom *dicom,
                                                tsr_error *error)
{
    silence();
    std::memset(dicom, 0, sizeof *dicom);
    describe_job job = {nullptr, bytes, size, dicom, error, is_whole};
    return guarded(error, describe_memory, &job);
}
