/* Rivals: the table of codecs. Each entry's calls are in the file of its library. */
#include "rivals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRESENT_0(calls) NULL
#define PRESENT_1(calls) (&(calls))
#define PRESENT__(with, calls) PRESENT_##with(calls)
#define PRESENT(with, calls) PRESENT__(with, calls)

#define TESSERA_QPS "QP 9,QP 13,QP 17,QP 21,QP 25,QP 29,QP 33,QP 38"

/* Tessera with another coder than the effort's own. */
#define TESSERA_CODER(its_key, its_name, coder, effort, words)                                              \
    {                                                                                                       \
        .key = its_key, .name = its_name, .options = "as Tessera, with --coder for " words,                 \
        .reason = "What " words " costs or gains beside the coder that the effort brings", .is_ours = true, \
        .prefix = "-", .lowest = 1, .highest = 9, .is_whole = true, .settings = effort, .variant = coder,   \
        .calls = &tessera_calls                                                                             \
    }
#define TESSERA_LOSSY_CODER(its_key, its_name, coder, words)                                                      \
    {                                                                                                             \
        .key = its_key, .name = its_name, .options = "as Tessera lossy, with --coder for " words,                 \
        .reason = "What " words " costs or gains beside the coder that the effort brings", .is_lossy = true,      \
        .is_ours = true, .prefix = "QP ", .lowest = -6, .highest = 51, .settings = TESSERA_QPS, .variant = coder, \
        .calls = &tessera_calls                                                                                   \
    }

static const struct codec codecs[] = {
    {.key = "tessera",
     .name = "Tessera",
     .options = "1 thread, whole .tsr of the samples in memory, not verified",
     .reason = "The efforts from fastest to smallest; other codecs do not verify what they write either",
     .is_ours = true,
     .prefix = "-",
     .lowest = 1,
     .highest = 9,
     .is_whole = true,
     .settings = "-1,-2,-3,-5,-7,-9",
     .calls = &tessera_calls},
    TESSERA_CODER("tessera-rans", "Tessera rANS", TSR_CODER_RANS, "-5", "rANS"),
    TESSERA_CODER("tessera-huffman", "Tessera Huffman", TSR_CODER_HUFFMAN, "-9", "Huffman"),
    TESSERA_CODER("tessera-cavlc", "Tessera CAVLC", TSR_CODER_CAVLC, "-5", "CAVLC"),
    {.key = "png",
     .name = "PNG",
     .package = "libpng-dev",
     .options = "deflate level 9, libpng's choice of filters",
     .reason = "The smallest file that libpng writes by itself; samples of 9 to 15 bits take 16",
     .calls = PRESENT(TSR_WITH_PNG, png_calls)},
    {.key = "zstd",
     .name = "Zstandard",
     .package = "libzstd-dev",
     .options = "level 19, samples as bytes (over 8 bits: 2 bytes, low byte first)",
     .reason = "The highest level without --ultra: what general-purpose compression gets at best",
     .calls = PRESENT(TSR_WITH_ZSTD, zstd_calls)},
    {.key = "jpeg-ls",
     .name = "JPEG-LS",
     .package = "libcharls-dev",
     .options = "true depth; colour: the smallest of interleave sample or line with transform none or HP1 to HP3",
     .reason = "The transforms are CharLS's extension; the best choice differs by picture, so all are tried, untimed",
     .calls = PRESENT(TSR_WITH_CHARLS, jpeg_ls_calls)},
    {.key = "jpeg-2000",
     .name = "JPEG 2000",
     .package = "libopenjp2-7-dev",
     .options = "reversible 5/3, RCT on RGB, 6 resolutions, blocks of 64 x 64, codestream, true depth",
     .reason = "The defaults of opj_compress; DICOM's JPEG 2000 lossless is this coding",
     .calls = PRESENT(TSR_WITH_OPENJPEG, jpeg_2000_calls)},
    {.key = "htj2k",
     .name = "HTJ2K",
     .package = "libopenjph-dev",
     .options = "reversible 5/3, RCT on RGB, 5 decompositions, blocks of 64 x 64, codestream, true depth",
     .reason = "The defaults of ojph_compress; DICOM's HTJ2K lossless is this coding",
     .calls = PRESENT(TSR_WITH_OPENJPH, htj2k_calls)},
    {.key = "jxl-1",
     .name = "JPEG XL effort 1",
     .package = "libjxl-dev",
     .options = "lossless (modular), effort 1, true depth, 1 thread",
     .reason = "libjxl's fastest effort",
     .variant = 1,
     .calls = PRESENT(TSR_WITH_JXL, jxl_calls)},
    {.key = "jxl-3",
     .name = "JPEG XL effort 3",
     .package = "libjxl-dev",
     .options = "lossless (modular), effort 3, true depth, 1 thread",
     .reason = "The lowest effort with a predictor of its own for each region's context",
     .variant = 3,
     .calls = PRESENT(TSR_WITH_JXL, jxl_calls)},
    {.key = "jxl-7",
     .name = "JPEG XL effort 7",
     .package = "libjxl-dev",
     .options = "lossless (modular), effort 7, true depth, 1 thread",
     .reason = "libjxl's default effort",
     .variant = 7,
     .calls = PRESENT(TSR_WITH_JXL, jxl_calls)},
    {.key = "webp",
     .name = "WebP lossless",
     .package = "libwebp-dev",
     .options = "lossless preset 8 (method 4, quality 90), exact, 8 bits, 1 thread; grey is coded as RGB",
     .reason = "As cwebp -lossless -z 8; preset 9 took 30 times as long on photographs and was 0 to 2 % smaller",
     .calls = PRESENT(TSR_WITH_WEBP, webp_calls)},
    {.key = "dicom-rle",
     .name = "DICOM RLE",
     .package = "libdcmtk-dev",
     .options = "RLE Lossless; bytes of the pixel data's fragment",
     .reason = "The coding has no options",
     .variant = 0,
     .calls = PRESENT(TSR_WITH_DCMTK, dicom_calls)},
    {.key = "jpeg-lossless",
     .name = "JPEG lossless",
     .package = "libdcmtk-dev",
     .options = "process 14, selection value 1, tables made for the picture; bytes of the pixel data's fragment",
     .reason = "DICOM's default lossless JPEG, as dcmcjpeg +e1 codes it",
     .variant = 1,
     .calls = PRESENT(TSR_WITH_DCMTK, dicom_calls)},
    {.key = "tessera-lossy",
     .name = "Tessera lossy",
     .options = "transform path, effort 5 and its coder, 1 thread, not verified",
     .reason = "The default effort; QP is the quality that the user sets",
     .is_lossy = true,
     .is_ours = true,
     .prefix = "QP ",
     .lowest = -6,
     .highest = 51,
     .settings = TESSERA_QPS,
     .calls = &tessera_calls},
    TESSERA_LOSSY_CODER("tessera-lossy-rans", "Tessera lossy rANS", TSR_CODER_RANS, "rANS"),
    TESSERA_LOSSY_CODER("tessera-lossy-cavlc", "Tessera lossy CAVLC", TSR_CODER_CAVLC, "CAVLC"),
    {.key = "jpeg",
     .name = "JPEG",
     .package = "libjpeg-dev",
     .options = "4:4:4, default Huffman tables, slow integer DCT",
     .reason = "What most programs write, at full chroma resolution as the other codecs have it",
     .is_lossy = true,
     .prefix = "q ",
     .lowest = 1,
     .highest = 100,
     .is_whole = true,
     .settings = "q 15,q 30,q 50,q 70,q 82,q 90,q 95,q 98",
     .variant = 0,
     .calls = PRESENT(TSR_WITH_JPEG, jpeg_calls)},
    {.key = "jpeg-optimised",
     .name = "JPEG optimised",
     .package = "libjpeg-dev",
     .options = "4:4:4, Huffman tables made for the picture, slow integer DCT",
     .reason = "The smallest baseline JPEG of the same decoded picture",
     .is_lossy = true,
     .prefix = "q ",
     .lowest = 1,
     .highest = 100,
     .is_whole = true,
     .settings = "q 15,q 30,q 50,q 70,q 82,q 90,q 95,q 98",
     .variant = 1,
     .calls = PRESENT(TSR_WITH_JPEG, jpeg_calls)},
    {.key = "jpeg-420-optimised",
     .name = "JPEG 4:2:0 optimised",
     .package = "libjpeg-dev",
     .options = "4:2:0 (colour alone), Huffman tables made for the picture, slow integer DCT",
     .reason = "Half the chroma resolution is the usual choice for photographs",
     .is_lossy = true,
     .prefix = "q ",
     .lowest = 1,
     .highest = 100,
     .is_whole = true,
     .settings = "q 15,q 30,q 50,q 70,q 82,q 90,q 95,q 98",
     .variant = 2,
     .calls = PRESENT(TSR_WITH_JPEG, jpeg_calls)},
    {.key = "jpeg-2000-lossy",
     .name = "JPEG 2000 lossy",
     .package = "libopenjp2-7-dev",
     .options = "9/7, ICT on RGB, one layer of a PSNR, 6 resolutions, blocks of 64 x 64, codestream",
     .reason = "The defaults of opj_compress -I -q: rate allocation reaches the PSNR with the fewest bytes",
     .is_lossy = true,
     .prefix = "dB ",
     .lowest = 10,
     .highest = 90,
     .settings = "dB 28,dB 31,dB 34,dB 37,dB 40,dB 43,dB 46,dB 50",
     .variant = 1,
     .calls = PRESENT(TSR_WITH_OPENJPEG, jpeg_2000_calls)},
    {.key = "htj2k-lossy",
     .name = "HTJ2K lossy",
     .package = "libopenjph-dev",
     .options = "9/7, ICT on RGB, one base step, 5 decompositions, blocks of 64 x 64, codestream",
     .reason = "OpenJPH has no rate allocation: its quantisation step is its quality",
     .is_lossy = true,
     .prefix = "step ",
     .lowest = 0.00001,
     .highest = 0.5,
     .settings = "step 0.005,step 0.008,step 0.013,step 0.02,step 0.032,step 0.05,step 0.08,step 0.13",
     .variant = 1,
     .calls = PRESENT(TSR_WITH_OPENJPH, htj2k_calls)},
    {.key = "jxl-lossy",
     .name = "JPEG XL lossy",
     .package = "libjxl-dev",
     .options = "VarDCT, effort 7, 1 thread",
     .reason = "libjxl's default effort; its quality is a distance that the eye would see",
     .is_lossy = true,
     .prefix = "d ",
     .lowest = 0.01,
     .highest = 25,
     .settings = "d 0.1,d 0.2,d 0.4,d 0.8,d 1.5,d 3,d 5,d 8",
     .variant = 7,
     .calls = PRESENT(TSR_WITH_JXL, jxl_calls)},
    {.key = "webp-lossy",
     .name = "WebP lossy",
     .package = "libwebp-dev",
     .options = "method 4, 4:2:0, 1 thread; grey is coded as RGB",
     .reason = "The defaults of cwebp -q; WebP's lossy coding always halves the chroma resolution",
     .is_lossy = true,
     .prefix = "q ",
     .lowest = 0,
     .highest = 100,
     .settings = "q 10,q 30,q 50,q 70,q 82,q 90,q 95,q 100",
     .variant = 1,
     .calls = PRESENT(TSR_WITH_WEBP, webp_calls)},
};
enum { CODECS = sizeof codecs / sizeof *codecs };

const struct codec *codec_at(size_t index)
{
    if (index < CODECS) return &codecs[index];
    if (!getenv("TESSERA_RIVALS_FAKE")) return NULL;
    for (size_t i = 0; fake_codecs[i].key; i++)
        if (i == index - CODECS) return &fake_codecs[i];
    return NULL;
}

const struct codec *codec_by_key(const char *key)
{
    const struct codec *codec;
    for (size_t i = 0; (codec = codec_at(i)); i++)
        if (!strcmp(codec->key, key)) return codec;
    return NULL;
}

bool parse_setting(const struct codec *codec, const char *text, double *setting)
{
    *setting = 0;
    if (!codec->prefix) return !*text;
    const size_t length = strlen(codec->prefix);
    if (strncmp(text, codec->prefix, length) != 0) return false;
    char *end;
    *setting = strtod(text + length, &end);
    return end != text + length && !*end && *setting >= codec->lowest && *setting <= codec->highest &&
           (!codec->is_whole || *setting == (int)*setting);
}

const char *find_lossy_obstacle(const struct codec *codec, const struct picture *picture)
{
    (void)codec;
    if (picture->bits != 8) return "lossy codecs are compared on 8 bits";
    if (picture->channels != 1 && picture->channels != 3) return "lossy codecs are compared on grey and RGB pictures";
    return NULL;
}
