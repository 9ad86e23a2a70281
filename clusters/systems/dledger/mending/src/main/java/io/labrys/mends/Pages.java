package io.labrys.mends;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/** What the mended class of mapped files calls; a jar with this mend has this class. */
public final class Pages {
    private static final int BYTES = 4096;

    private Pages() {}

    /**
     * Gets space on the disk for the bytes that come next in a mapped file. The file is sparse, and a write into mapped memory cannot report that
     * the disk is full. A write to the file can. It writes what the pages have, because the library also writes in front of entries.
     *
     * @param file the mapped file
     * @param from the position of the first byte; the page of the byte before it has space
     * @param length how many bytes come
     * @param size the number of mapped bytes
     * @return whether the disk has space for all of them
     */
    public static boolean allocated(FileChannel file, int from, int length, int size) {
        int first = roundedUp(from);
        int end = Math.min(size, roundedUp(from + length));
        if (first >= end) {
            return true;
        }
        ByteBuffer bytes = ByteBuffer.allocate(end - first);
        try {
            int count = 0;
            while (bytes.hasRemaining() && count >= 0) {
                count = file.read(bytes, first + bytes.position());
            }
            bytes.clear(); // behind the end of the file are zeros
            while (bytes.hasRemaining()) {
                file.write(bytes, first + bytes.position());
            }
            return true;
        } catch (IOException full) {
            return false;
        }
    }

    private static int roundedUp(int position) {
        return (position + BYTES - 1) / BYTES * BYTES;
    }
}
