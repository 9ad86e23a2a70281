package io.labrys.dledger.state;

/**
 * One write in the replicated log.
 *
 * @param id its id, see {@link OpId}
 * @param kind its kind
 * @param key the register, at most {@link CommandCodec#MAX_KEY_BYTES} bytes in UTF-8
 * @param value the new value of the register
 * @param expected for {@link Kind#CAS}: the value that the register must have before; null means that there must be no such
 *     register yet. Null for {@link Kind#PUT}
 */
public record Command(OpId id, Kind kind, String key, long value, Long expected) {

    /** The kinds of writes. A kind's code is part of the log's format and never changes. */
    public enum Kind {
        /** Sets the register. */
        PUT(1),
        /** Sets the register if it has the expected value. */
        CAS(2);

        final byte code;

        Kind(int code) {
            this.code = (byte) code;
        }
    }
}
