# 64 bits, big-endian, char without a sign.
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(machine_triple s390x-linux-gnu)
set(machine_folder s390x-linux-gnu)
set(machine_loader /lib/ld64.so.1)
set(machine_emulator qemu-s390x)
include(${CMAKE_CURRENT_LIST_DIR}/machine.cmake)
