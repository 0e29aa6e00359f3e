// Decodes one frame of a .tsr: go build frame.go; ./frame FILE.tsr FRAME OUT    OUT gets the raw samples
// cgo reads tessera.h, so no structure is written down twice. It needs a C compiler.
package main

// #cgo LDFLAGS: -ltessera
// #include <tessera.h>
import "C"
import (
	"fmt"
	"os"
	"strconv"
	"unsafe"
)

var failure C.struct_tsr_error

func check(status C.enum_tsr_status) {
	if status != C.TSR_OK {
		fmt.Fprintln(os.Stderr, C.GoString(&failure.text[0]))
		os.Exit(int(status))
	}
}

func main() {
	number, _ := strconv.ParseUint(os.Args[2], 10, 32)
	source := C.tsr_from_path(C.CString(os.Args[1]))
	var engine *C.struct_tsr_engine
	var reader *C.struct_tsr_reader
	var image C.struct_tsr_image
	check(C.tsr_engine_create(nil, &engine, &failure))
	check(C.tsr_open(engine, &source, &reader, &failure))
	check(C.tsr_reader_image(reader, 0, &image, &failure)) // member 0: the .tsr is no series
	frame := make([]byte, (C.tsr_frame_bits(&image)+7)/8)
	check(C.tsr_read_frame(reader, 0, C.uint32_t(number), unsafe.Pointer(&frame[0]), C.size_t(len(frame)), 0, &failure))
	C.tsr_close(reader) // the engine ends with the program
	fmt.Printf("%d x %d, %d bits\n", image.columns, image.rows, image.bits_stored)
	if err := os.WriteFile(os.Args[3], frame, 0o644); err != nil {
		panic(err)
	}
}
