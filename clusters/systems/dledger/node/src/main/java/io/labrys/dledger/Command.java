package io.labrys.dledger;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/**
 * A change of one register, as it stands in the log.
 *
 * <p>Layout, big-endian: version (1 byte), kind (1 byte), id (8), expected (8), value (8), then the key in UTF-8. What is
 * not such an entry (an empty body, another version) decodes to nothing and changes nothing, on every replica alike.
 *
 * @param kind put or cas
 * @param id unique among the commands that one process submits, so that their results can be found again
 * @param key the register
 * @param expected for cas: the value that it must hold
 * @param value the value to hold afterwards
 */
record Command(Kind kind, long id, String key, long expected, long value) {
    private static final byte VERSION = 1;
    private static final int HEAD_BYTES = 2 + 3 * Long.BYTES;

    enum Kind {
        PUT,
        CAS
    }

    byte[] encode() {
        byte[] keyBytes = key.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(HEAD_BYTES + keyBytes.length)
                .put(VERSION)
                .put((byte) kind.ordinal())
                .putLong(id)
                .putLong(expected)
                .putLong(value)
                .put(keyBytes)
                .array();
    }

    static Optional<Command> decode(byte[] body) {
        if (body == null || body.length < HEAD_BYTES) {
            return Optional.empty();
        }
        ByteBuffer buffer = ByteBuffer.wrap(body);
        byte version = buffer.get();
        int kind = buffer.get();
        if (version != VERSION || kind < 0 || kind >= Kind.values().length) {
            return Optional.empty();
        }
        long id = buffer.getLong();
        long expected = buffer.getLong();
        long value = buffer.getLong();
        String key = new String(body, HEAD_BYTES, body.length - HEAD_BYTES, StandardCharsets.UTF_8);
        return Optional.of(new Command(Kind.values()[kind], id, key, expected, value));
    }
}
