package io.labrys.dledger.state;

/**
 * One write as it stands in the replicated log.
 *
 * @param id its name, see {@link OpId}
 * @param kind what it does
 * @param key the register, at most {@link CommandCodec#MAX_KEY_BYTES} bytes in UTF-8
 * @param value what the register shall hold
 * @param expected for {@link Kind#CAS}: what it must hold before; null is "no such register yet". Null for {@link Kind#PUT}
 */
public record Command(OpId id, Kind kind, String key, long value, Long expected) {

    /** The kinds of writes. A kind's code is part of the log's format and never changes. */
    public enum Kind {
        /** Sets the register, whatever it holds. */
        PUT(1),
        /** Sets the register if it holds the expected value. */
        CAS(2);

        final byte code;

        Kind(int code) {
            this.code = (byte) code;
        }
    }
}
