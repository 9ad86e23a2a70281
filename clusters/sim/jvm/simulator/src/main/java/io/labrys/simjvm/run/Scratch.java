package io.labrys.simjvm.run;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/**
 * Large buffers in which a type of the program only reads what it has written before, so that it does not matter what they hold at first.
 *
 * <p>Each thread that appends an entry to a log may have one of 4 MB. A run has about 40 of them. The JVM would fill each one with zeros,
 * and collect it. So a process gets those of processes that have ended.
 */
public final class Scratch {
    private static final int LARGE = 1 << 20;
    private static final int MOST = 32;
    private static final Deque<byte[]> FREE = new ArrayDeque<>();

    private Scratch() {}

    /** Takes the place of {@link ByteBuffer#allocate}. */
    public static ByteBuffer allocate(int size) {
        if (size < LARGE) {
            return ByteBuffer.allocate(size);
        }
        byte[] bytes = FREE.peek() != null && FREE.peek().length == size ? FREE.pop() : new byte[size];
        SimProcess.current().add(bytes);
        return ByteBuffer.wrap(bytes);
    }

    /** Takes the buffers of a process that has ended. */
    static void free(List<byte[]> buffers) {
        for (byte[] each : buffers) {
            if (FREE.size() < MOST) {
                FREE.push(each);
            }
        }
    }
}
