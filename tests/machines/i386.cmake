# 32 bits, little-endian; 64-bit integers lie at multiples of 4, and doubles are computed in 80 bits.
set(CMAKE_SYSTEM_PROCESSOR i686)
set(machine_triple i686-linux-gnu)
set(machine_folder i386-linux-gnu)
set(machine_loader /lib/ld-linux.so.2)
set(machine_emulator qemu-i386)
include(${CMAKE_CURRENT_LIST_DIR}/machine.cmake)
