// The header under C++17: memory to memory, and a frame.
#include <algorithm>
#include <cstdio>
#include <vector>

#include <tessera.h>

static int64_t append(void *context, const void *bytes, size_t count)
{
    auto *out = static_cast<std::vector<uint8_t> *>(context);
    const auto *from = static_cast<const uint8_t *>(bytes);
    out->insert(out->end(), from, from + count);
    return static_cast<int64_t>(count);
}

int main()
{
    tsr_engine_options options = TSR_ENGINE_OPTIONS;
    tsr_compress_options compress = TSR_COMPRESS_OPTIONS;
    tsr_engine *engine = nullptr;
    tsr_reader *reader = nullptr;
    tsr_error error;
    const char head[] = "P5 64 64 255\n";
    std::vector<uint8_t> pgm(head, head + sizeof head - 1), tsr, frame(64 * 64);
    for (int i = 0; i < 64 * 64; i++) pgm.push_back(static_cast<uint8_t>(i / 40 + i % 64));
    options.choice = TSR_ENGINE_CPU;
    compress.effort = 9;
    tsr_status status = tsr_engine_create(&options, &engine, &error);
    const tsr_data_source source = tsr_from_memory(pgm.data(), pgm.size());
    const tsr_data_sink sink = tsr_to_calls(append, &tsr);
    if (status == TSR_OK) status = tsr_compress(engine, &source, &sink, &compress, nullptr, &error);
    const tsr_data_source coded = tsr_from_memory(tsr.data(), tsr.size());
    if (status == TSR_OK) status = tsr_open(engine, &coded, &reader, &error);
    if (status == TSR_OK) status = tsr_read_frame(reader, 0, 0, frame.data(), frame.size(), 0, &error);
    if (status != TSR_OK) std::fprintf(stderr, "%s\n", error.text);
    tsr_close(reader);
    tsr_engine_destroy(engine);
    return status == TSR_OK && std::equal(frame.begin(), frame.end(), pgm.end() - 64 * 64) ? 0 : 1;
}
