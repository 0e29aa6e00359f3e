# 64 bits, little-endian, char without a sign.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(machine_triple aarch64-linux-gnu)
set(machine_folder aarch64-linux-gnu)
set(machine_loader /lib/ld-linux-aarch64.so.1)
set(machine_emulator qemu-aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/machine.cmake)
