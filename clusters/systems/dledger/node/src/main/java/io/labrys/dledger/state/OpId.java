package io.labrys.dledger.state;

import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Names one write of one node process, so that its answer is found again even where the library has lost track of it.
 *
 * <p>The law: no two writes of a cluster's life share a name. {@code process} is drawn at random when a node process starts
 * (62 random bits), {@code number} counts within it.
 *
 * @param process the node process that took the write
 * @param number the write's number in that process
 */
public record OpId(long process, long number) {

    /** Hands out the names of one node process. Safe for several threads. */
    public static final class Source {
        private final long process = UUID.randomUUID().getLeastSignificantBits();
        private final AtomicLong next = new AtomicLong();

        /** Returns a name that was never returned before. */
        public OpId next() {
            return new OpId(process, next.getAndIncrement());
        }
    }
}
