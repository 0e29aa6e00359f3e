/* See dcmtk_witness.h. No exception leaves this file. */
#include "dcmtk_witness.h"
#include "io/formats/dicom/module/dcmtk_objects.h"

#include <cstring>
#include <vector>

namespace
{

using namespace tsr_dcmtk;

long number_of(DcmItem &item, const DcmTagKey &tag)
{
    Uint16 value;
    if (item.findAndGetUint16(tag, value).good()) return value;
    Sint32 wide;
    if (item.findAndGetSint32(tag, wide).good()) return wide;
    return -1;
}

/* A word that has a sign or none, as it stands. */
long word_of(DcmItem &item, const DcmTagKey &tag)
{
    Uint16 value;
    if (item.findAndGetUint16(tag, value).good()) return value;
    Sint16 with_sign;
    if (item.findAndGetSint16(tag, with_sign).good()) return static_cast<Uint16>(with_sign);
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

/* DCMTK may read the elements in another form than the transfer syntax says. */
tsr_dicom_syntax syntax_of(const char *uid, const DcmXfer &read_as)
{
    const tsr_dicom_syntax syntax = tsr_dicom_syntax_of(uid);
    return syntax == TSR_DICOM_NATIVE && !read_as.isNotEncapsulated() ? TSR_DICOM_OTHER : syntax;
}

void describe_item(DcmDataset &dataset, tsr_dicom *dicom)
{
    const DcmXfer read_as(dataset.getOriginalXfer());
    dicom->big_endian = read_as.isBigEndian();
    dicom->has_big_pixels = read_as.isBigEndian();
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
    dicom->padding = word_of(dataset, DCM_PixelPaddingValue);
    dicom->padding_limit = word_of(dataset, DCM_PixelPaddingRangeLimit);
    text_of(dataset, DCM_PhotometricInterpretation, dicom->photometric, sizeof dicom->photometric);
    text_of(dataset, DCM_Modality, dicom->modality, sizeof dicom->modality);
}

tsr_status guarded(tsr_error *error, tsr_status (*work)(void *), void *context)
{
    try {
        silence();
        return work(context);
    } catch (...) {
        return tsr_fail(error, TSR_ERROR_CORRUPT, "DCMTK cannot read it");
    }
}

struct describe_job {
    const uint8_t *bytes;
    size_t size;
    tsr_dicom *dicom;
    uint64_t *value_offset;
    tsr_error *error;
};

tsr_status describe_dataset(void *context)
{
    describe_job &job = *static_cast<describe_job *>(context);
    memory_stream stream;
    DcmDataset dataset;
    fill_stream(stream, job.bytes, job.size);
    const OFCondition condition = read_object(dataset, EXS_LittleEndianExplicit, stream, DCM_PixelData);
    if (condition.bad() || stream.was_deep()) return fail_reading(stream, condition, job.error);
    *job.value_offset = static_cast<uint64_t>(stream.tell());
    describe_item(dataset, job.dicom);
    return TSR_OK;
}

tsr_status describe_file(void *context)
{
    describe_job &job = *static_cast<describe_job *>(context);
    memory_stream stream;
    DcmFileFormat file;
    fill_stream(stream, job.bytes, job.size);
    const OFCondition condition = read_object(file, EXS_Unknown, stream, DCM_PixelData);
    if (condition.bad() || stream.was_deep()) return fail_reading(stream, condition, job.error);
    text_of(*file.getMetaInfo(), DCM_TransferSyntaxUID, job.dicom->syntax_uid, sizeof job.dicom->syntax_uid);
    DcmDataset &dataset = *file.getDataset();
    job.dicom->syntax = syntax_of(job.dicom->syntax_uid, DcmXfer(dataset.getOriginalXfer()));
    *job.value_offset = static_cast<uint64_t>(stream.tell());
    describe_item(dataset, job.dicom);
    return TSR_OK;
}

/* ---- Lossy copies ---- */

struct compare_job {
    const tsr_dicom_bytes *original, *derived;
    const uint32_t *tags;
    int tag_count;
    tsr_error *error;
};

/* Removes the elements that a lossy copy may change. */
void drop_derived(const compare_job &job, DcmItem &item)
{
    for (int i = 0; i < job.tag_count; i++) {
        const Uint16 group = static_cast<Uint16>(job.tags[i] >> 16),
                     element = static_cast<Uint16>(job.tags[i] & 0xffff);
        delete item.remove(DcmTagKey(group, element));
        delete item.remove(DcmTagKey(group, 0));
    }
}

unsigned long count_items(DcmItem &item, const DcmTagKey &tag)
{
    DcmSequenceOfItems *sequence = nullptr;
    return item.findAndGetSequence(tag, sequence).good() ? sequence->card() : 0;
}

/* Removes the item that a lossy copy has more in a sequence. */
void drop_added(DcmItem &original, DcmItem &copy, const DcmTagKey &tag)
{
    DcmSequenceOfItems *sequence = nullptr;
    const unsigned long count = count_items(original, tag);
    if (count_items(copy, tag) == count + 1 && copy.findAndGetSequence(tag, sequence).good())
        delete sequence->remove(count);
    if (count > 0 || count_items(copy, tag) > 0) return;
    delete original.remove(tag);
    delete copy.remove(tag);
}

/* The same in the functional groups of the data set. */
void drop_added_derivations(DcmItem &original, DcmItem &copy, const DcmTagKey &groups)
{
    DcmSequenceOfItems *of_original = nullptr, *of_copy = nullptr;
    if (original.findAndGetSequence(groups, of_original).bad() || copy.findAndGetSequence(groups, of_copy).bad())
        return;
    for (unsigned long i = 0; i < of_original->card() && i < of_copy->card(); i++)
        drop_added(*of_original->getItem(i), *of_copy->getItem(i), DCM_DerivationImageSequence);
}

/* The value of an element as a text without its padding. */
OFString whole_text(DcmElement &element)
{
    OFString text;
    if (element.getOFStringArray(text, OFFalse).bad()) text.clear();
    while (!text.empty() && (text[text.length() - 1] == ' ' || text[text.length() - 1] == '\0'))
        text.erase(text.length() - 1);
    return text;
}

/* Changes in sequences that a lossy copy makes (DERIVED.md). UIDs empty: it is the copy, in which only what an
 * original has more is removed. */
struct changes {
    OFString original_uid, copy_uid;
    bool in_groups, is_inner;
};

void change_text(DcmElement &element, const changes &c)
{
    const DcmTagKey tag = element.getTag();
    const bool refers = tag == DCM_ReferencedSOPInstanceUID || tag == DCM_SOPInstanceUIDOfConcatenationSource ||
                        (c.is_inner && tag == DCM_SOPInstanceUID);
    if (c.copy_uid.empty()) return;
    if (refers && element.ident() == EVR_UI && !c.original_uid.empty() && whole_text(element) == c.original_uid)
        element.putString(c.copy_uid.c_str());
    if (!c.in_groups || tag != DCM_FrameType || element.ident() != EVR_CS) return;
    const OFString text = whole_text(element);
    const size_t rest = text.find('\\');
    element.putString((OFString("DERIVED") + (rest == OFString_npos ? OFString() : text.substr(rest))).c_str());
}

void change_item(DcmItem &item, const changes &outer)
{
    enum { FIRST_VALUE = 0x00280106, LAST_VALUE = 0x00280111 };
    for (unsigned long i = item.card(); i-- > 0;) {
        DcmElement &element = *item.getElement(i);
        const DcmTagKey tag = element.getTag();
        const Uint32 number = static_cast<Uint32>(tag.getGroup()) << 16 | tag.getElement();
        if (tag.getElement() == 0) {
            delete item.remove(i); /* the length of a group */
        } else if (tag.getGroup() % 2 != 0 || tag == DCM_SourceImageSequence) {
            continue;
        } else if (element.ident() == EVR_SQ) {
            DcmSequenceOfItems &sequence = static_cast<DcmSequenceOfItems &>(element);
            const bool is_groups =
                tag == DCM_SharedFunctionalGroupsSequence || tag == DCM_PerFrameFunctionalGroupsSequence;
            const changes inner = {outer.original_uid, outer.copy_uid,
                                   outer.in_groups || (!outer.is_inner && is_groups), true};
            for (unsigned long k = 0; k < sequence.card(); k++) change_item(*sequence.getItem(k), inner);
        } else if (outer.in_groups && number >= FIRST_VALUE && number <= LAST_VALUE) {
            delete item.remove(i);
        } else {
            change_text(element, outer);
        }
    }
}

/* Makes the data sets of an original and of its lossy copy the same where the copy is as it must be. */
void change_datasets(DcmDataset &original, DcmDataset &copy)
{
    DcmElement *old_uid = nullptr, *new_uid = nullptr;
    changes c = {"", "", false, false};
    change_item(copy, c);
    if (original.findAndGetElement(DCM_SOPInstanceUID, old_uid).good()) c.original_uid = whole_text(*old_uid);
    if (copy.findAndGetElement(DCM_SOPInstanceUID, new_uid).good()) c.copy_uid = whole_text(*new_uid);
    change_item(original, c);
    for (const DcmTagKey &tag : {DCM_ReferencedSeriesSequence, DCM_SourceImageSequence, DCM_SourceImageEvidenceSequence,
                                 DCM_DerivationCodeSequence})
        drop_added(original, copy, tag);
    drop_added_derivations(original, copy, DCM_SharedFunctionalGroupsSequence);
    drop_added_derivations(original, copy, DCM_PerFrameFunctionalGroupsSequence);
}

/* The bytes of an item without the elements that a lossy copy may change. */
OFCondition rest_of(const compare_job &job, DcmItem &item, std::vector<uint8_t> &out)
{
    drop_derived(job, item);
    return item.card() == 0 ? EC_Normal : write_object(item, EXS_LittleEndianExplicit, out);
}

/* Bytes of a header that DCMTK did not keep: DCMTK drops an element if an earlier one has the same tag. Parts that two
 * headers have in common count the same in both. */
int64_t lost_bytes(const tsr_dicom_bytes &header, DcmFileFormat &file)
{
    DcmDataset &dataset = *file.getDataset();
    const int64_t meta = file.getMetaInfo()->calcElementLength(EXS_LittleEndianExplicit, EET_ExplicitLength),
                  rest = dataset.calcElementLength(dataset.getOriginalXfer(), EET_ExplicitLength);
    return static_cast<int64_t>(header.size) - meta - rest;
}

tsr_status compare_headers(void *context)
{
    enum { LEAST_ELEMENT = 8 }; /* a smaller difference is from values of odd length, which DCMTK makes even */

    compare_job &job = *static_cast<compare_job *>(context);
    DcmFileFormat one, other;
    std::vector<uint8_t> one_rest, other_rest;
    tsr_status status = read_whole(*job.original, one, job.error, DCM_PixelData);
    if (status == TSR_OK) status = read_whole(*job.derived, other, job.error, DCM_PixelData);
    if (status != TSR_OK) return status;
    const bool has_doubles = lost_bytes(*job.derived, other) - lost_bytes(*job.original, one) >= LEAST_ELEMENT;
    change_datasets(*one.getDataset(), *other.getDataset());
    OFCondition result = rest_of(job, *one.getMetaInfo(), one_rest);
    if (result.good()) result = rest_of(job, *one.getDataset(), one_rest);
    if (result.good()) result = rest_of(job, *other.getMetaInfo(), other_rest);
    if (result.good()) result = rest_of(job, *other.getDataset(), other_rest);
    if (result.bad()) return fail_condition(result, "DCMTK", job.error);
    if (one_rest == other_rest && !has_doubles) return TSR_OK;
    return tsr_fail(job.error, TSR_ERROR_CORRUPT, "its header does not survive a lossy copy");
}

} // namespace

extern "C" {

tsr_status dcmtk_describe(const uint8_t *bytes, size_t size, tsr_dicom *dicom, uint64_t *value_offset, tsr_error *error)
{
    std::memset(dicom, 0, sizeof *dicom);
    describe_job job = {bytes, size, dicom, value_offset, error};
    return guarded(error, describe_file, &job);
}

tsr_status dcmtk_describe_dataset(const uint8_t *bytes, size_t size, tsr_dicom *dicom, uint64_t *value_offset,
                                  tsr_error *error)
{
    std::memset(dicom, 0, sizeof *dicom);
    describe_job job = {bytes, size, dicom, value_offset, error};
    return guarded(error, describe_dataset, &job);
}

tsr_status dcmtk_compare_headers(const tsr_dicom_bytes *original, const tsr_dicom_bytes *derived, const uint32_t *tags,
                                 int tag_count, tsr_error *error)
{
    compare_job job = {original, derived, tags, tag_count, error};
    return guarded(error, compare_headers, &job);
}
}
