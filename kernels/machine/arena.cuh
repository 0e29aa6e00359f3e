/* How a batch's arrays follow each other in device memory. */
#ifndef TSR_KERNELS_MACHINE_ARENA_CUH
#define TSR_KERNELS_MACHINE_ARENA_CUH

#include "device.cuh"

enum {
    TSR_ARRAY_ALIGN = 256,
    TSR_SPARE_BYTES = 64 /* after strings and payloads: whole words are read and written */
};

/* Gives array room for count elements at base + used, or, with base null, only counts the room. */
template <typename T> static void tsr_take_array(T *&array, uint8_t *base, size_t &used, size_t count)
{
    const size_t bytes = count * sizeof(T);
    size_t room = (bytes + TSR_ARRAY_ALIGN - 1) / TSR_ARRAY_ALIGN * TSR_ARRAY_ALIGN;
    array = base ? reinterpret_cast<T *>(base + used) : NULL;
#if defined(TSR_CUDA_EMULATED)
    if (count) room += TSR_ARRAY_ALIGN; /* every array is followed by bytes that must not be touched */
    if (base) tsr_emulated_array(array, bytes, room - bytes);
#endif
    used += room;
}

#endif
