/* The module's table (dicom_module.h), and what needs DCMTK's dictionary: headers as text, and data sets of implicit VR
 * or big endian in explicit VR. No exception leaves this file. */
#include "jpeg_2000_codecs.h"
#include "jpeg_codec.h"

#if TSR_WITH_DCMTK

#include "dcmtk_objects.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <dcmtk/dcmdata/dcjson.h>

namespace
{

using namespace tsr_dcmtk;

/* DCMTK allocates some memory without exceptions and continues if there is none. This handler notes it. */
thread_local bool ran_out;
std::new_handler next_handler;

void note_no_memory()
{
    ran_out = true;
    if (!next_handler) throw std::bad_alloc();
    next_handler();
    ran_out = false; /* next_handler has freed some memory */
}

void watch_memory()
{
    static const bool watched = [] {
        next_handler = std::set_new_handler(note_no_memory);
        return true;
    }();
    (void)watched;
}

/* The first thread that reads the dictionary loads it. If there is not enough memory in spite of the heap that the
 * caller has filled, DCMTK's lock of the dictionary stays locked, and a second attempt would wait for ever. So there is
 * only one attempt. */
bool load_dictionary()
{
    static const bool is_loaded = [] {
        try {
            dcmDataDict.rdlock();
            dcmDataDict.rdunlock();
            return true;
        } catch (const std::bad_alloc &) {
            return false;
        }
    }();
    return is_loaded;
}

/* Without the dictionary, elements of implicit VR have no meaning. DCMTK reads the dictionary from files, and one of
 * them may be missing: two elements, from its middle and from its end, show that it is complete. */
tsr_status need_dictionary(tsr_error *error)
{
    if (!load_dictionary()) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for DCMTK's data dictionary");
    const DcmDataDictionary &dictionary = dcmDataDict.rdlock();
    const bool is_there = dictionary.findEntry(DCM_Rows, nullptr) && dictionary.findEntry(DCM_PixelData, nullptr);
    dcmDataDict.rdunlock();
    if (is_there) return TSR_OK;
    const int another = ::open("/", O_RDONLY | O_CLOEXEC);
    if (another < 0 && (errno == EMFILE || errno == ENFILE))
        return tsr_fail(error, TSR_ERROR_LIMIT, "too many open files to read DCMTK's data dictionary");
    if (another >= 0) ::close(another);
    return tsr_fail(error, TSR_ERROR_READ,
                    "DCMTK's data dictionary cannot be read; set DCMDICTPATH to the file dicom.dic");
}

/* Runs work that uses DCMTK and its dictionary. Exceptions become a status. */
tsr_status guarded(tsr_error *error, tsr_status (*work)(void *), void *context)
{
    tsr_status status = TSR_OK;
    watch_memory();
    ran_out = false;
    try {
        silence();
        status = need_dictionary(error);
        if (status == TSR_OK) status = work(context);
    } catch (const std::bad_alloc &) {
        ran_out = true;
    } catch (...) {
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "DCMTK cannot read it");
    }
    return ran_out ? tsr_fail(error, TSR_ERROR_LIMIT, "no memory to read DICOM") : status;
}

tsr_status nothing(void *)
{
    return TSR_OK;
}

/* ---- Data sets in explicit VR ---- */

tsr_status hand_over(const void *bytes, size_t size, tsr_dicom_made *made, tsr_error *error)
{
    made->bytes = static_cast<uint8_t *>(std::malloc(size + 1));
    if (!made->bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes", size);
    std::memcpy(made->bytes, bytes, size);
    made->size = size;
    return TSR_OK;
}

struct convert_job {
    const uint8_t *bytes;
    size_t size;
    tsr_dicom_form form;
    tsr_dicom_made *made;
    tsr_error *error;
};

tsr_status make_explicit(void *context)
{
    convert_job &job = *static_cast<convert_job *>(context);
    const E_TransferSyntax syntax = !job.form.explicit_vr ? EXS_LittleEndianImplicit
                                    : job.form.big_endian ? EXS_BigEndianExplicit
                                                          : EXS_LittleEndianExplicit;
    memory_stream stream;
    DcmDataset dataset;
    fill_stream(stream, job.bytes, job.size);
    OFCondition result = read_object(dataset, syntax, stream);
    if (result.bad() || stream.was_deep()) return fail_reading(stream, result, job.error);
    std::vector<uint8_t> out;
    result = write_object(dataset, EXS_LittleEndianExplicit, out);
    if (result.bad()) return fail_condition(result, "DCMTK cannot write it in explicit VR", job.error);
    return hand_over(out.data(), out.size(), job.made, job.error);
}

/* ---- Headers as text ---- */

struct print_job {
    const tsr_dicom_bytes *header;
    bool as_json;
    tsr_dicom_made *made;
    tsr_error *error;
};

/* JSON is UTF-8, whatever the character set of the data set is. */
OFCondition write_json(DcmFileFormat &file, std::ostream &out)
{
#ifdef DCMTK_ENABLE_CHARSET_CONVERSION
    const OFCondition result = file.convertToUTF8();
    if (result.bad()) return result;
#endif
    DcmJsonFormatCompact format(OFFalse);
    return file.writeJson(out, format);
}

/* The padding of a value, after its bracket: dcmdump shows none. */
void move_padding(std::string &text)
{
    for (size_t end, at = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
        const size_t bracket = text.rfind(']', end);
        if (bracket == std::string::npos || bracket <= at) continue;
        size_t kept = bracket;
        while (kept > at && (text[kept - 1] == ' ' || text[kept - 1] == '\0')) kept--;
        text[kept] = ']';
        for (size_t i = kept + 1; i <= bracket; i++) text[i] = ' ';
    }
}

tsr_status print_header(void *context)
{
    print_job &job = *static_cast<print_job *>(context);
    DcmFileFormat file;
    std::ostringstream out;
    const tsr_status status = read_whole(*job.header, file, job.error);
    if (status != TSR_OK) return status;
    if (job.as_json) {
        const OFCondition result = write_json(file, out);
        if (result.bad()) return fail_condition(result, "DCMTK cannot write it as JSON", job.error);
    } else {
        file.print(out, DCMTypes::PF_shortenLongTagValues);
    }
    std::string text = out.str();
    if (!job.as_json) move_padding(text);
    return hand_over(text.c_str(), text.size() + 1, job.made, job.error);
}

/* ---- What the library calls ---- */

void prepare()
{
    guarded(nullptr, nothing, nullptr);
}

tsr_status make_explicit(const uint8_t *bytes, size_t size, tsr_dicom_form form, tsr_dicom_made *made, tsr_error *error)
{
    convert_job job = {bytes, size, form, made, error};
    return guarded(error, make_explicit, &job);
}

tsr_status print(const tsr_dicom_bytes *header, bool as_json, tsr_dicom_made *made, tsr_error *error)
{
    print_job job = {header, as_json, made, error};
    const tsr_status status = guarded(error, print_header, &job);
    if (status == TSR_OK) made->size--; /* its zero */
    return status;
}

} // namespace

#else

namespace
{

void prepare()
{
}

constexpr decltype(tsr_dicom_module::make_explicit) make_explicit = nullptr;
constexpr decltype(tsr_dicom_module::print) print = nullptr;

} // namespace

#endif

extern "C" {
__attribute__((visibility("default"))) extern const tsr_dicom_module TSR_DICOM_MODULE;
const tsr_dicom_module TSR_DICOM_MODULE = {TSR_VERSION_STRING, prepare,          make_explicit, print,
                                           encode_jpeg_2000,   decode_jpeg_2000, decode_jpeg};
}
