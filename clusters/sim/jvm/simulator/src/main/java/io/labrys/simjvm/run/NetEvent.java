package io.labrys.simjvm.run;

/**
 * What happens to a connection of a process.
 *
 * @param kind what it is
 * @param connection the number of the connection
 * @param text the peer of an accepted connection, or why a connection is closed; otherwise empty
 * @param data the bytes that have arrived; null if it is none of these
 */
public record NetEvent(Kind kind, long connection, String text, byte[] data) {
    /** The kinds of events. */
    public enum Kind {
        /** Another process has connected to a port. */
        ACCEPTED,
        /** A connection that this process began is open. */
        OPENED,
        /** Bytes have arrived. */
        DATA,
        /** The connection is closed: refused, reset, or closed by the other side. */
        CLOSED
    }
}
