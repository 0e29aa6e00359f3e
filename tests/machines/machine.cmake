# What the machines' toolchain files share. TSR_MACHINE_ROOT is the folder with the machine's libraries, which run.sh fetches.
# machine_triple is the name of Debian's compilers, machine_folder that of a library folder, machine_loader that of ld.so.
set(CMAKE_SYSTEM_NAME Linux)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TSR_MACHINE_ROOT)
set(CMAKE_C_COMPILER ${machine_triple}-gcc)
set(CMAKE_CXX_COMPILER ${machine_triple}-g++)
set(CMAKE_SYSROOT ${TSR_MACHINE_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_DISABLE_FIND_PACKAGE_DCMTK ON) # Debian's DCMTKTargets.cmake has absolute paths: the libraries are looked for instead
set(ENV{PKG_CONFIG_LIBDIR} ${TSR_MACHINE_ROOT}/usr/lib/${machine_folder}/pkgconfig:${TSR_MACHINE_ROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${TSR_MACHINE_ROOT})

# Programs name their loader and libraries by paths of this system. So qemu needs no -L, with which it would take the root
# folder for "/", and a program that makes folders from "/" on would make them there.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,--dynamic-linker=${TSR_MACHINE_ROOT}${machine_loader} -Wl,--disable-new-dtags \
-Wl,-rpath,${TSR_MACHINE_ROOT}/lib/${machine_folder}:${TSR_MACHINE_ROOT}/usr/lib/${machine_folder}")
if(NOT DEFINED CMAKE_CROSSCOMPILING_EMULATOR) # empty where this machine runs the programs itself
  set(CMAKE_CROSSCOMPILING_EMULATOR ${machine_emulator})
endif()
