/* The samples of a DICOM file as DCMTK decodes them, for the scripts, and what holds of every file that is well formed.
 * usage: tsr_dicom_samples FILE SAMPLES
 * Writes the samples as native pixel data has them, interleaved and little endian, without padding. Prints the transfer
 * syntax, the photometric interpretation, the planar configuration, bits allocated, bits stored, high bit, and Lossy
 * Image Compression with its ratio, a word each, "-" for none; then a line with a number for all other elements. Exits
 * with 3 where DCMTK has no decoder: only the form was checked then; with 1 where something is wrong. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcostrmb.h>
#include <dcmtk/dcmdata/dcrledrg.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>
#include <dcmtk/dcmdata/dcwcache.h>
#include <dcmtk/dcmjpeg/djdecode.h>
#include <dcmtk/dcmjpls/djdecode.h>

namespace
{

void fail(const char *what)
{
    std::fprintf(stderr, "tsr_dicom_samples: %s\n", what);
    std::exit(1);
}

unsigned long number_of(DcmDataset &dataset, const DcmTagKey &tag, unsigned long usual)
{
    Uint16 value;
    Sint32 text;
    if (dataset.findAndGetUint16(tag, value).good()) return value;
    return dataset.findAndGetSint32(tag, text).good() ? static_cast<unsigned long>(text) : usual;
}

std::string text_of(DcmDataset &dataset, const DcmTagKey &tag)
{
    OFString value;
    if (dataset.findAndGetOFString(tag, value).bad() || value.empty()) return "-";
    return value.c_str();
}

/* A fragment for each frame, of an even length, and an offset table that says where they are, or none. */
void check_fragments(DcmDataset &dataset, E_TransferSyntax syntax, unsigned long frames)
{
    DcmElement *element = nullptr;
    DcmPixelSequence *sequence = nullptr;
    if (dataset.findAndGetElement(DCM_PixelData, element).bad()) fail("it has no pixel data");
    if (static_cast<DcmPixelData *>(element)->getEncapsulatedRepresentation(syntax, nullptr, sequence).bad() ||
        !sequence)
        fail("it has no fragments");
    if (sequence->card() != frames + 1) fail("it has not a fragment for each frame");
    DcmPixelItem *table = nullptr, *item = nullptr;
    Uint8 *offsets = nullptr;
    sequence->getItem(table, 0);
    const unsigned long size = table->getLength();
    if (size != 0 && size != 4 * frames) fail("its offset table has another length");
    if (size > 0) table->getUint8Array(offsets);
    unsigned long at = 0;
    for (unsigned long f = 0; f < frames; f++) {
        sequence->getItem(item, f + 1);
        if (item->getLength() % 2 != 0) fail("a fragment has an odd length");
        const unsigned char *const o = offsets + 4 * f;
        if (offsets && (o[0] | o[1] << 8 | o[2] << 16 | static_cast<unsigned long>(o[3]) << 24) != at)
            fail("its offset table is wrong");
        at += item->getLength() + 8;
    }
}

/* The first bytes of a file: the group's length leads to the data set. */
void check_meta(const char *path)
{
    unsigned char head[144];
    FILE *const file = std::fopen(path, "rb");
    if (!file || std::fread(head, 1, sizeof head, file) != sizeof head) fail("it is short");
    std::fclose(file);
    static const unsigned char wanted[] = {'D', 'I', 'C', 'M', 2, 0, 0, 0, 'U', 'L', 4, 0};
    if (std::memcmp(head + 128, wanted, sizeof wanted) != 0) fail("its meta header has no group length");
}

std::vector<unsigned char> samples_of(DcmDataset &dataset, unsigned long frames)
{
    const unsigned long rows = number_of(dataset, DCM_Rows, 0), columns = number_of(dataset, DCM_Columns, 0),
                        planes = number_of(dataset, DCM_SamplesPerPixel, 1),
                        allocated = number_of(dataset, DCM_BitsAllocated, 0), pixels = rows * columns;
    const size_t bytes = (pixels * planes * frames * allocated + 7) / 8;
    const Uint8 *eight = nullptr;
    const Uint16 *sixteen = nullptr;
    std::vector<unsigned char> out(bytes);
    unsigned long count = 0;
    if (dataset.findAndGetUint16Array(DCM_PixelData, sixteen, &count).good() && sixteen) {
        if (2 * count < bytes) fail("its pixel data is short");
        for (size_t i = 0; i < bytes; i++) out[i] = static_cast<unsigned char>(sixteen[i / 2] >> 8 * (i % 2));
    } else if (dataset.findAndGetUint8Array(DCM_PixelData, eight, &count).good() && eight) {
        if (count < bytes) fail("its pixel data is short");
        std::memcpy(out.data(), eight, bytes);
    } else {
        fail("it has no samples");
    }
    const unsigned spare = static_cast<unsigned>(8 * bytes - pixels * planes * frames * allocated);
    if (spare > 0) out[bytes - 1] = static_cast<unsigned char>(out[bytes - 1] & 0xff >> spare); /* after the last bit */
    if (planes == 1 || number_of(dataset, DCM_PlanarConfiguration, 0) == 0) return out;
    const std::vector<unsigned char> planar = out;
    const size_t each = allocated / 8;
    for (size_t f = 0; f < frames; f++)
        for (size_t p = 0; p < planes; p++)
            for (size_t i = 0; i < pixels; i++)
                std::memcpy(&out[((f * pixels + i) * planes + p) * each],
                            &planar[((f * planes + p) * pixels + i) * each], each);
    return out;
}

/* A number for all other elements, in the form that DCMTK gives them: an export leaves them as they are. */
unsigned long rest_of(DcmFileFormat &file)
{
    static const DcmTagKey changed[] = {
        DCM_PixelData, DCM_PhotometricInterpretation, DCM_PlanarConfiguration,  DCM_BitsStored,
        DCM_HighBit,   DcmTagKey(0x7fe0, 0x0001),     DcmTagKey(0x7fe0, 0x0002)};
    DcmDataset &dataset = *file.getDataset();
    for (const DcmTagKey &tag : changed) delete dataset.remove(tag);
    for (unsigned group = 2; group < 0xfffe; group += 2) /* retired lengths of groups */
        delete dataset.remove(DcmTagKey(static_cast<Uint16>(group), 0));
    std::vector<char> buffer(1 << 20);
    DcmOutputBufferStream stream(buffer.data(), static_cast<offile_off_t>(buffer.size()));
    DcmWriteCache cache;
    dataset.transferInit();
    if (dataset.write(stream, EXS_LittleEndianExplicit, EET_ExplicitLength, &cache).bad()) fail("its header is large");
    dataset.transferEnd();
    void *bytes = nullptr;
    offile_off_t count = 0;
    stream.flushBuffer(bytes, count);
    unsigned long sum = 0;
    for (offile_off_t i = 0; i < count; i++) sum = (sum * 31 + static_cast<unsigned char *>(bytes)[i]) & 0xffffffff;
    return sum;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3) fail("usage: tsr_dicom_samples FILE SAMPLES");
    OFLog::configure(OFLogger::OFF_LOG_LEVEL);
    DcmRLEDecoderRegistration::registerCodecs();
    DJDecoderRegistration::registerCodecs(EDC_never);
    DJLSDecoderRegistration::registerCodecs();
    DcmFileFormat file;
    if (file.loadFile(argv[1]).bad()) fail("DCMTK cannot read it");
    DcmDataset &dataset = *file.getDataset();
    file.loadAllDataIntoMemory();
    OFString uid;
    file.getMetaInfo()->findAndGetOFString(DCM_TransferSyntaxUID, uid);
    const DcmXfer syntax(uid.c_str());
    const unsigned long frames = number_of(dataset, DCM_NumberOfFrames, 1);
    std::printf("%s %s %s %lu %lu %lu %s %s\n", uid.empty() ? "-" : uid.c_str(),
                text_of(dataset, DCM_PhotometricInterpretation).c_str(),
                text_of(dataset, DCM_PlanarConfiguration).c_str(), number_of(dataset, DCM_BitsAllocated, 0),
                number_of(dataset, DCM_BitsStored, 0), number_of(dataset, DCM_HighBit, 0),
                text_of(dataset, DCM_LossyImageCompression).c_str(),
                text_of(dataset, DCM_LossyImageCompressionRatio).c_str());
    check_meta(argv[1]);
    OFString sop, media;
    if (dataset.findAndGetOFString(DCM_SOPInstanceUID, sop).good() &&
        (file.getMetaInfo()->findAndGetOFString(DCM_MediaStorageSOPInstanceUID, media).bad() || sop != media))
        fail("its meta header has another instance");
    if (!uid.empty() && syntax.getXfer() == EXS_Unknown) return 3; /* HTJ2K, before DCMTK 3.6.8 */
    if (syntax.isEncapsulated()) check_fragments(dataset, dataset.getOriginalXfer(), frames);
    if (dataset.chooseRepresentation(EXS_LittleEndianExplicit, nullptr).bad()) return 3;
    const std::vector<unsigned char> samples = samples_of(dataset, frames);
    FILE *const out = std::fopen(argv[2], "wb");
    if (!out || std::fwrite(samples.data(), 1, samples.size(), out) != samples.size() || std::fclose(out) != 0)
        fail("cannot write the samples");
    std::printf("rest %lx\n", rest_of(file));
    return 0;
}
