/* DCMTK's objects, read from memory and written to it: for the module, and for the tests' witness. */
#ifndef TSR_IO_FORMATS_DICOM_DCMTK_OBJECTS_H
#define TSR_IO_FORMATS_DICOM_DCMTK_OBJECTS_H

#include "io/formats/dicom/dicom_module.h"

#include <vector>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmdata/dcistrmb.h>
#include <dcmtk/dcmdata/dcostrmb.h>
#include <dcmtk/dcmdata/dcwcache.h>
#include <dcmtk/oflog/oflog.h>

namespace tsr_dcmtk
{

/* DCMTK would print its messages on the terminal. The library never prints. */
inline void silence()
{
    static const bool silent = [] {
        OFLog::configure(OFLogger::OFF_LOG_LEVEL);
        dcmEnableAutomaticInputDataCorrection.set(OFFalse); /* values of odd length stay as they are */
        return true;
    }();
    (void)silent;
}

/* DCMTK reads nested sequences by recursion, with 1.5 KB of stack a layer. A file of 100 KB can nest them so deep that
 * the stack overflows. This stream fails for good as soon as it is read more than limit bytes of stack below the place
 * where it was made. */
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
    static constexpr uintptr_t limit = 256 << 10; /* about 180 layers; real files have a dozen */
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

inline tsr_status fail_condition(const OFCondition &condition, const char *what, tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "%s: %s", what, condition.text());
}

using memory_stream = shallow<DcmInputBufferStream>;

inline void fill_stream(memory_stream &stream, const uint8_t *bytes, size_t size)
{
    stream.setBuffer(bytes, static_cast<offile_off_t>(size));
    stream.setEos();
}

inline tsr_status fail_reading(const memory_stream &stream, const OFCondition &condition, tsr_error *error)
{
    if (stream.was_deep()) return tsr_fail(error, TSR_ERROR_CORRUPT, "its sequences are nested too deep");
    return fail_condition(condition, "DCMTK", error);
}

/* Reads a file or a data set from its beginning, up to the value of the element stop or to the end. */
template <class Object>
OFCondition read_object(Object &object, E_TransferSyntax syntax, memory_stream &stream,
                        const DcmTagKey &stop = DCM_UndefinedTagKey)
{
    object.transferInit();
    const OFCondition result = object.readUntilTag(stream, syntax, EGL_noChange, DCM_MaxReadLength, stop);
    object.transferEnd();
    return result;
}

/* Reads a whole header: the meta header, if there is one, and the data set up to the value of the element stop, or to
 * its end. */
inline tsr_status read_whole(const tsr_dicom_bytes &header, DcmFileFormat &file, tsr_error *error,
                             const DcmTagKey &stop = DCM_UndefinedTagKey)
{
    memory_stream stream;
    OFCondition condition;
    if (header.is_inflated) {
        memory_stream meta;
        fill_stream(meta, header.bytes, header.dataset_offset);
        DcmMetaInfo &info = *file.getMetaInfo();
        info.transferInit();
        condition = info.read(meta, EXS_Unknown, EGL_noChange, DCM_MaxReadLength);
        info.transferEnd();
        if (condition.bad()) return fail_reading(meta, condition, error);
        fill_stream(stream, header.bytes + header.dataset_offset, header.size - header.dataset_offset);
        condition = read_object(*file.getDataset(), EXS_LittleEndianExplicit, stream, stop);
    } else {
        fill_stream(stream, header.bytes, header.size);
        condition = read_object(file, EXS_Unknown, stream, stop);
    }
    return condition.bad() || stream.was_deep() ? fail_reading(stream, condition, error) : TSR_OK;
}

/* Writes an object in a transfer syntax. The stream's buffer is emptied as often as it fills. */
inline OFCondition write_object(DcmObject &object, E_TransferSyntax syntax, std::vector<uint8_t> &out)
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

} // namespace tsr_dcmtk

#endif
