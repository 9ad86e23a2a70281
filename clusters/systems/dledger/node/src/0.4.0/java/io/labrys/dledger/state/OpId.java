package io.labrys.dledger.state;

import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The id of one write, so that the node finds the write's answer even if the library loses it.
 *
 * <p>Ids are unique over all processes and restarts. A node process draws {@code process} at its start (62 random bits), and
 * {@code number} counts its writes.
 *
 * @param process the node process that received the write
 * @param number the write's number in that process
 */
public record OpId(long process, long number) {

    /** Makes the ids of one node process. Thread-safe. */
    public static final class Source {
        private final long process = UUID.randomUUID().getLeastSignificantBits();
        private final AtomicLong next = new AtomicLong();

        /** Returns a new id. */
        public OpId next() {
            return new OpId(process, next.getAndIncrement());
        }
    }
}
