package io.labrys.simjvm.run;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * Writes into pages of mapped files for which a full disk has no space.
 *
 * <p>A page of a sparse file takes space when it is first written. If there is none, the kernel sends a signal. The JVM skips the
 * store, and throws an {@link InternalError} at some later instruction of the thread. So of the bytes of one write, those in other
 * pages are stored. Here the error comes at one of the next {@value #MOST_POINTS} points of the thread; see {@link Stalls}. A page that
 * has only zeros counts as one that was never written, unless the program has written the zeros by a channel.
 */
final class MissingPages {
    private static final int MOST_POINTS = 200;

    /** How many threads have an error to come. It is static so that a point costs one look. */
    private static int erring;
    /** The ranges of the write that comes next which are not stored, as pairs of indexes; null if all of it is. */
    private static List<int[]> missing;

    private MissingPages() {}

    /** The error that the JVM throws. A process can go on after it, so it does not end the run. */
    static final class Fault extends InternalError {
        private static final long serialVersionUID = 1;

        Fault() {
            super("a fault occurred in a recent unsafe memory access operation in compiled Java code");
        }

        @Override
        public String toString() {
            return InternalError.class.getName() + ": " + getMessage();
        }
    }

    /** Begins a run. */
    static void reset() {
        erring = 0;
        missing = null;
    }

    /** Comes before a write into a buffer of a full disk, which is at least a part of a mapped file. Some pages have space for sure. */
    static void find(ByteBuffer buffer, int position, int length, Set<Long> allocated) {
        long address = Addresses.of(buffer);
        long first = (address + position) / Disk.PAGE_BYTES * Disk.PAGE_BYTES - address;
        for (long page = first; page < position + length; page += Disk.PAGE_BYTES) {
            int end = (int) Math.min(buffer.capacity(), page + Disk.PAGE_BYTES);
            int at = (int) Math.max(0, page);
            while (at < end && buffer.get(at) == 0) {
                at++;
            }
            if (at == end && !allocated.contains(address + page)) {
                missing = missing == null ? new ArrayList<>() : missing;
                missing.add(new int[] {(int) Math.max(position, page), Math.min(position + length, end)});
            }
        }
    }

    /** Comes after each write into a mapped buffer. */
    static void drop(ByteBuffer buffer) {
        if (missing == null) {
            return;
        }
        for (int[] range : missing) {
            for (int at = range[0]; at < range[1]; at++) {
                buffer.put(at, (byte) 0);
            }
        }
        missing = null;
        SimThread me = Scheduler.get().current();
        if (me.pointsToFault == 0) {
            me.pointsToFault = (int) Math.pow(MOST_POINTS, Scheduler.get().drawFault());
            erring++;
        }
    }

    /** Notes that a thread is at a point. */
    static void point() {
        if (erring == 0) {
            return;
        }
        SimThread me = Scheduler.get().current();
        if (me.pointsToFault > 0 && !me.initializes() && !me.looks() && !me.process.killed() && --me.pointsToFault == 0) {
            erring--;
            throw new Fault();
        }
    }
}
