/* The raster of one frame's stream; see frame_stream.h. */
#include "frame_stream.h"

#include "dicom_file.h"
#include "io/dicom/dicom_walk.h"
#include "io/nodes/jpeg_ls/jpeg_ls.h"
#include "io/nodes/jpeg_markers.h"
#include "jpeg_2000.h"

/* Passes the markers of JPEG or JPEG-LS up to a frame header, or up to SOS if is_scan is set. Returns the marker, and
 * its segment; 0: there is none. */
static int find_marker(const uint8_t *stream, size_t size, bool is_scan, struct tsr_cursor *segment)
{
    struct tsr_cursor c = {stream, size, 2, false};
    if (size < 4 || stream[0] != 0xff || stream[1] != 0xd8) return 0;
    for (int marker; (marker = tsr_jpeg_get_marker(&c)) >= 0 && tsr_jpeg_get_segment(&c, segment);) {
        const bool is_frame = marker == TSR_JPEG_SOF55 || tsr_jpeg_is_frame(marker);
        if (is_scan ? marker == TSR_JPEG_SOS : is_frame) return marker;
        if (marker == TSR_JPEG_SOS) return 0;
    }
    return 0;
}

static bool loses(const uint8_t *stream, size_t size)
{
    struct tsr_cursor segment;
    if (find_marker(stream, size, false, &segment) != TSR_JPEG_SOF55) return tsr_jpeg_2000_loses(stream, size);
    if (!find_marker(stream, size, true, &segment)) return false;
    return segment.size >= 3 && segment.bytes[segment.size - 3] > 0; /* NEAR: T.87 C.2.3 */
}

bool tsr_dicom_frames_lose(struct tsr_input *input, uint64_t value)
{
    enum { LOOK = 1 << 12 };
    uint8_t bytes[LOOK];
    struct tsr_dicom_piece item;
    if (!tsr_dicom_read_item(input, value, &item) || !tsr_dicom_read_item(input, item.value + item.head.length, &item))
        return false;
    const size_t size = item.head.length < LOOK ? item.head.length : LOOK;
    return size <= item.left && tsr_input_read(input, item.value, bytes, size, NULL) == TSR_OK && loses(bytes, size);
}

/* PS3.5 G.5: the number of segments, and the offset of the first. */
static bool begins_rle(const uint8_t *stream, size_t size)
{
    enum { HEAD = 64, MOST_SEGMENTS = 15 };
    return size >= HEAD && tsr_read_u32(stream) - 1 < MOST_SEGMENTS && tsr_read_u32(stream + 4) == HEAD;
}

/* NULL: it is of no node that makes a raster of it. */
static const struct tsr_node *node_of(const struct tsr_header *header, const uint8_t *stream, size_t size)
{
    const struct tsr_node *const usual = tsr_are_units(header) ? NULL : tsr_raster_node(header->parameters[0]);
    struct tsr_cursor segment;
    if (find_marker(stream, size, false, &segment) == TSR_JPEG_SOF3) return &tsr_node_jpeg_lossless;
    return usual ? usual : begins_rle(stream, size) ? &tsr_node_rle : NULL;
}

static enum tsr_status split(const struct tsr_node *node, const struct tsr_image *image, const uint8_t *stream,
                             size_t size, uint8_t *raster, struct tsr_error *error)
{
    struct tsr_bytes residue = {.limit = SIZE_MAX / 4};
    const enum tsr_status status = tsr_node_split(node, image, stream, size, raster, &residue, error);
    tsr_bytes_free(&residue);
    return status;
}

static enum tsr_status decode(const struct tsr_header *header, const uint8_t *stream, size_t size, uint8_t *raster,
                              struct tsr_error *error)
{
    const struct tsr_image *const image = &header->image;
    struct tsr_cursor segment;
    const int marker = find_marker(stream, size, false, &segment);
    const struct tsr_node *const node = node_of(header, stream, size);
    const bool is_2000 = tsr_begins_jpeg_2000(stream, size),
               is_lossy = marker == TSR_JPEG_SOF0 || marker == TSR_JPEG_SOF1 || marker == TSR_JPEG_SOF2 ||
                          marker == TSR_JPEG_SOF9 || marker == TSR_JPEG_SOF10;
    if ((is_2000 || is_lossy) && image->planar && image->components > 1)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its colours are in planes, which this codec does not have");
    if (is_2000) return tsr_jpeg_2000_read(image, stream, size, raster, error);
    if (marker == TSR_JPEG_SOF55) return tsr_jpeg_ls_read(image, stream, size, raster, error);
    if (is_lossy) return tsr_dicom_decode_jpeg(image, stream, size, raster, error);
    if (node) return split(node, image, stream, size, raster, error);
    return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a stream of no codec that this version decodes");
}

enum tsr_status tsr_dicom_decode_stream(const struct tsr_header *header, uint32_t frame, const uint8_t *stream,
                                        size_t size, uint8_t *raster, struct tsr_error *error)
{
    struct tsr_error why = {.offset = TSR_NO_OFFSET};
    const enum tsr_status status = decode(header, stream, size, raster, &why);
    if (status == TSR_OK) return TSR_OK;
    return tsr_fail(error, status, "frame %u cannot be decoded: %s", frame, why.text);
}
