// Decodes one frame of a .tsr by JNA: javac -cp jna.jar Frame.java; java -cp jna.jar:. Frame FILE.tsr FRAME OUT
// OUT gets the raw samples. The numbers are the places of the fields in the structures of tessera.h on a machine of 64 bits.
import com.sun.jna.*;
import com.sun.jna.ptr.PointerByReference;
import java.nio.file.*;

public class Frame {
    public interface Tessera extends Library {
        int tsr_engine_create(Pointer options, PointerByReference engine, Pointer error);
        void tsr_engine_destroy(Pointer engine);
        int tsr_open(Pointer engine, Pointer source, PointerByReference reader, Pointer error);
        void tsr_close(Pointer reader);
        int tsr_reader_image(Pointer reader, int member, Pointer image, Pointer error);
        long tsr_frame_bits(Pointer image);
        int tsr_read_frame(Pointer reader, int member, int frame, byte[] buffer, long count, long rowBytes, Pointer error);
    }
    static final Memory error = new Memory(536), image = new Memory(40), source = new Memory(128);

    static void check(int status) {
        if (status != 0) System.err.println(error.getString(16)); // its text
        if (status != 0) System.exit(status);
    }
    public static void main(String[] words) throws Exception {
        Tessera tessera = Native.load("tessera", Tessera.class);
        PointerByReference engine = new PointerByReference(), reader = new PointerByReference();
        Memory path = new Memory(4 * words[0].length() + 1);
        path.setString(0, words[0]);
        source.clear();
        source.setLong(0, 128);     // its size
        source.setPointer(16, path);
        check(tessera.tsr_engine_create(null, engine, error));
        check(tessera.tsr_open(engine.getValue(), source, reader, error));
        check(tessera.tsr_reader_image(reader.getValue(), 0, image, error)); // member 0: the .tsr is no series
        byte[] frame = new byte[(int) ((tessera.tsr_frame_bits(image) + 7) / 8)];
        check(tessera.tsr_read_frame(reader.getValue(), 0, Integer.parseInt(words[1]), frame, frame.length, 0, error));
        tessera.tsr_close(reader.getValue()); tessera.tsr_engine_destroy(engine.getValue());
        Files.write(Paths.get(words[2]), frame);
        System.out.printf("%d x %d, %d bits%n", image.getInt(0), image.getInt(4), image.getByte(14));
    }
}
