package io.labrys.simjvm;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The frames of the controller. A frame has its length (4 bytes), and then its content.
 *
 * <p>One read of the input takes all that is there. A stream of the JDK asks the system four times for each frame.
 */
final class Input {
    /** The JDK reads at most so much at once without a copy on the heap of the system. */
    private static final int PIECE = 8192;

    private final InputStream in;
    private byte[] bytes = new byte[PIECE];
    private int from;
    private int end;

    Input(InputStream in) {
        this.in = in;
    }

    /** Returns the content of the next frame, until the next call; null at the end of the input. */
    ByteBuffer next() throws IOException {
        if (!has(Integer.BYTES)) {
            return null;
        }
        int size = ByteBuffer.wrap(bytes, from, Integer.BYTES).getInt();
        from += Integer.BYTES;
        if (!has(size)) {
            return null;
        }
        from += size;
        return ByteBuffer.wrap(bytes, from - size, size);
    }

    /** Reads until so many bytes are there. Returns false if the input ends before. */
    private boolean has(int size) throws IOException {
        if (from == end) {
            from = 0;
            end = 0;
        }
        while (end - from < size) {
            if (from + size > bytes.length || end == bytes.length) {
                byte[] wider = new byte[Math.max(bytes.length, size + PIECE)];
                System.arraycopy(bytes, from, wider, 0, end - from);
                bytes = wider;
                end -= from;
                from = 0;
            }
            int count = in.read(bytes, end, Math.min(PIECE, bytes.length - end));
            if (count < 0) {
                return false;
            }
            end += count;
        }
        return true;
    }

    static String text(ByteBuffer from) {
        int size = from.getInt();
        String text = new String(from.array(), from.arrayOffset() + from.position(), size, StandardCharsets.UTF_8);
        from.position(from.position() + size);
        return text;
    }

    static String[] texts(ByteBuffer from) {
        String[] found = new String[from.getInt()];
        Arrays.setAll(found, i -> text(from));
        return found;
    }

    static byte[] bytes(ByteBuffer from) {
        byte[] found = new byte[from.getInt()];
        from.get(found);
        return found;
    }
}
