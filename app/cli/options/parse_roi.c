/* --roi and --first: a rectangle, the name of an image, or auto; --region: a rectangle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

/* A number of a rectangle, up to a comma or the end. False: it is none, or over 65535. */
static bool take_number(const char **text, char end, uint32_t *number)
{
    const char *at = *text;
    *number = 0;
    if (*at < '0' || *at > '9') return false;
    for (; *at >= '0' && *at <= '9' && *number <= UINT16_MAX; at++) *number = 10 * *number + (uint32_t)(*at - '0');
    *text = at + 1;
    return *at == end && *number <= UINT16_MAX;
}

/* Whether a text has only what rectangles have. */
static bool looks_like_rectangle(const char *text)
{
    return strspn(text, "0123456789,+-. ") == strlen(text);
}

/* A rectangle up to the end of a text. False: it is none. */
static bool take_rectangle(const char *text, struct tsr_region *r)
{
    const char *at = text;
    return take_number(&at, ',', &r->column) && take_number(&at, ',', &r->row) && take_number(&at, ',', &r->columns) &&
           take_number(&at, '\0', &r->rows) && r->columns > 0 && r->rows > 0;
}

/* A sentence about --roi or --first, of which text is what was given. */
static enum tsr_status refuse_region(const char *flag, const char *sentence, const char *text)
{
    char line[512];
    snprintf(line, sizeof line, "%s %s: '%.200s'", flag, sentence, text);
    return usage("%s", line);
}

static enum tsr_status add_rectangle(const char *text, const char *flag, struct roi_options *o)
{
    struct tsr_region r;
    if (!take_rectangle(text, &r))
        return refuse_region(flag, "wants column, row, columns and rows of samples, as 100,80,64,64", text);
    if (o->roi.rectangle_count == ROI_RECTANGLES)
        return refuse_region(flag, "is given more than 64 rectangles; an image may have as many as it likes", text);
    o->rectangles[o->roi.rectangle_count++] = r;
    return TSR_OK;
}

enum tsr_status parse_roi(const char *text, const char *flag, struct roi_options **options)
{
    struct roi_options *const o = *options ? *options : calloc(1, sizeof *o);
    if (!o) return refuse_memory(flag);
    if (!*options) o->roi = (struct tsr_roi)TSR_ROI;
    *options = o;
    o->roi.rectangles = o->rectangles;
    if (strcmp(text, "auto") == 0) {
        o->roi.body = true;
        return TSR_OK;
    }
    if (!text[0]) return refuse_region(flag, "wants a rectangle, the name of an image or auto", text);
    if (looks_like_rectangle(text)) return add_rectangle(text, flag, o);
    if (o->mask_count == ROI_MASKS) return refuse_region(flag, "is given more than 16 images", text);
    o->masks[o->mask_count++] = text;
    return TSR_OK;
}

enum tsr_status parse_tile(const char *text, struct coding_options *o)
{
    double number;
    if (!parse_number(text, 64, 256, &number) || number != 64 * (double)(int)(number / 64))
        return usage("--tile wants the side of a tile, 64, 128, 192 or 256 samples, not '%s'", text);
    o->compress.tile_side = (uint16_t)number;
    return TSR_OK;
}

enum tsr_status parse_region(const char *text, struct input_options *in, struct picture_options *o)
{
    char numbers[64];
    const size_t length = strcspn(text, "@");
    const bool has_level = text[length] == '@';
    if (o->is_region) return usage("--region is given twice: %s; one rectangle is written at a time", text);
    if (has_level && strcmp(text + length + 1, "base") != 0)
        return usage("--region %s: the only level that a file can have besides its own is @base", text);
    if (length < sizeof numbers) {
        memcpy(numbers, text, length);
        numbers[length] = '\0';
    }
    if (length >= sizeof numbers || !take_rectangle(numbers, &o->region))
        return usage("--region wants column, row, columns and rows of samples, as 100,80,64,64, not '%s'", text);
    o->is_region = true;
    in->base |= has_level;
    return TSR_OK;
}

enum tsr_status parse_frame(const char *text, struct picture_options *o)
{
    double number;
    if (!parse_number(text, 0, INT32_MAX, &number) || number != (uint32_t)number)
        return usage("--frame wants the number of a frame, counted from 0, not '%s'", text);
    o->frame = (uint32_t)number;
    o->is_frame = true;
    return TSR_OK;
}
