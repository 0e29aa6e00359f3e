# Writes a file's bytes as a C array: cmake -DINPUT=FILE -DOUTPUT=FILE.c -DNAME=page_style -P embed.cmake
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REPEAT "[^,]+," 20 row) # bytes a line
string(REGEX REPLACE "(${row})" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "/* ${INPUT}, by embed.cmake. */\n#include \"app/report/page.h\"\n"
  "const unsigned char ${NAME}[] = {\n${bytes}};\nconst size_t ${NAME}_size = sizeof ${NAME};\n")
