// Decodes one frame of a .tsr: rustc frame.rs; ./frame FILE.tsr FRAME OUT    OUT gets the raw samples
// The structures are those of tessera.h on a machine of 64 bits.
#![allow(dead_code)]
use std::{env, ffi::{c_void, CStr, CString}, fs, os::raw::{c_char, c_int}, ptr};

#[repr(C)]
struct Failure { status: c_int, offset: u64, text: [c_char; 512], system: c_int }
#[repr(C)]
struct Source { size: usize, medium: c_int, path: *const c_char, rest: [u64; 13] } // medium 0: a path
#[repr(C)]
#[derive(Default)]
struct Image { columns: u32, rows: u32, frames: u32, components: u8, bits_allocated: u8, bits_stored: u8, high_bit: u8,
    flags: [bool; 6], reserved: [u8; 14], stacked_rows: u32 } // flags: signed, planar, big endian, ...
#[link(name = "tessera")]
extern "C" {
    fn tsr_engine_create(options: *const c_void, engine: *mut *mut c_void, error: &mut Failure) -> c_int;
    fn tsr_open(engine: *mut c_void, source: &Source, reader: *mut *mut c_void, error: &mut Failure) -> c_int;
    fn tsr_reader_image(reader: *mut c_void, member: u32, image: &mut Image, error: &mut Failure) -> c_int;
    fn tsr_frame_bits(image: &Image) -> u64;
    fn tsr_read_frame(reader: *mut c_void, member: u32, frame: u32, to: *mut u8, count: usize, row_bytes: usize, error: &mut Failure) -> c_int;
    fn tsr_close(reader: *mut c_void);
    fn tsr_engine_destroy(engine: *mut c_void);
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let path = CString::new(&*words[1]).unwrap();
    let source = Source { size: std::mem::size_of::<Source>(), medium: 0, path: path.as_ptr(), rest: [0; 13] };
    let (mut engine, mut reader, mut image, mut frame) = (ptr::null_mut(), ptr::null_mut(), Image::default(), vec![]);
    let mut e = Failure { status: 0, offset: 0, text: [0; 512], system: 0 };
    let mut status = unsafe { tsr_engine_create(ptr::null(), &mut engine, &mut e) };
    if status == 0 { status = unsafe { tsr_open(engine, &source, &mut reader, &mut e) } }
    if status == 0 { status = unsafe { tsr_reader_image(reader, 0, &mut image, &mut e) } } // member 0: it is no series
    if status == 0 { frame = vec![0; unsafe { tsr_frame_bits(&image) + 7 } as usize / 8] }
    if status == 0 { status = unsafe { tsr_read_frame(reader, 0, words[2].parse().unwrap(), frame.as_mut_ptr(), frame.len(), 0, &mut e) } }
    unsafe { tsr_close(reader); tsr_engine_destroy(engine) }
    if status != 0 { panic!("{:?}", unsafe { CStr::from_ptr(e.text.as_ptr()) }) }
    fs::write(&words[3], frame).unwrap();
    println!("{} x {}, {} bits", image.columns, image.rows, image.bits_stored);
}
