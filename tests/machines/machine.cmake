# What the machines' toolchain files share. TSR_MACHINE_ROOT is the folder with the machine's libraries (run.sh fetches them),
# machine_triple the name of Debian's compilers, machine_emulator that of qemu's program.
set(CMAKE_SYSTEM_NAME Linux)
if(NOT TSR_MACHINE_ROOT) # try_compile() reads this file without the cache
  set(TSR_MACHINE_ROOT $ENV{TSR_MACHINE_ROOT})
endif()
set(CMAKE_C_COMPILER ${machine_triple}-gcc)
set(CMAKE_CXX_COMPILER ${machine_triple}-g++)
set(CMAKE_SYSROOT ${TSR_MACHINE_ROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR ${machine_emulator} -L ${TSR_MACHINE_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${TSR_MACHINE_ROOT}/usr/lib/${machine_folder}/pkgconfig:${TSR_MACHINE_ROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${TSR_MACHINE_ROOT})
set(CMAKE_DISABLE_FIND_PACKAGE_DCMTK ON) # Debian's DCMTKTargets.cmake names files of the root folder: the libraries are looked for instead
