# For scikit-build-core, by run.sh: the compiler of zig, which links with the glibc of TSR_WHEEL_GLIBC whatever this system's is, and
# static libraries of Debian's in TSR_WHEEL_ROOT, so that the wheel needs glibc alone. TSR_WHEEL_MACHINE: x86_64 or aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${TSR_WHEEL_MACHINE})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TSR_WHEEL_MACHINE TSR_WHEEL_ROOT TSR_WHEEL_TOOLS)
set(CMAKE_C_COMPILER ${TSR_WHEEL_TOOLS}/cc)
set(CMAKE_CXX_COMPILER ${TSR_WHEEL_TOOLS}/c++)
set(CMAKE_CXX_COMPILER_WORKS TRUE) # zig compiles libc++ anew for each kind of program, even for one that only tries this
set(CMAKE_CXX_ABI_COMPILED TRUE)
set(CMAKE_FIND_ROOT_PATH ${TSR_WHEEL_ROOT})
set(CMAKE_LIBRARY_ARCHITECTURE ${TSR_WHEEL_MACHINE}-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${TSR_WHEEL_ROOT}/usr/lib/${TSR_WHEEL_MACHINE}-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${TSR_WHEEL_ROOT})
# CMake names zig's own library before libc, which then gives its slow memcpy and its constant canary: zig names it itself, at the end.
file(WRITE ${CMAKE_BINARY_DIR}/after_project.cmake "set(CMAKE_C_IMPLICIT_LINK_LIBRARIES)\nset(CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)\n")
set(CMAKE_PROJECT_INCLUDE ${CMAKE_BINARY_DIR}/after_project.cmake)

# zig adds no hardening by itself; check.py looks for each of these in the wheel.
set(hardened "-isystem ${TSR_WHEEL_ROOT}/usr/include/${TSR_WHEEL_MACHINE}-linux-gnu -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fstack-clash-protection -fno-sanitize=all")
if(TSR_WHEEL_MACHINE STREQUAL aarch64)
  string(APPEND hardened " -mno-outline-atomics") # they are in zig's library, which brings a memcpy of its own
endif()
set(CMAKE_C_FLAGS_INIT "${hardened}")
set(CMAKE_CXX_FLAGS_INIT "${hardened}")
set(linked "-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,defs -Wl,--gc-sections -Wl,-s")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${linked}")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "${linked} ${TSR_WHEEL_TOOLS}/streams.o")
