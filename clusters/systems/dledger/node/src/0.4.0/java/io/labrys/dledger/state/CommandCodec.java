package io.labrys.dledger.state;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Encodes a {@link Command} as the body of a log entry, and decodes it.
 *
 * <p>{@code decode(encode(c))} equals {@code c}. {@code decode} refuses any other content, so every replica treats a foreign
 * entry alike.
 *
 * <p>The format, big-endian: byte 0x4C, byte version 1, byte kind, byte 1 if a value is expected else 0, int64 process and
 * int64 number of the id, int64 value, int64 expected (0 if none), uint16 length of the key, the key in UTF-8. Nothing follows
 * the key.
 */
public final class CommandCodec {
    /** The longest key, in bytes of UTF-8. */
    public static final int MAX_KEY_BYTES = 1024;

    private static final byte MAGIC = 0x4C;
    private static final byte VERSION = 1;
    private static final int FIXED_BYTES = 4 + 4 * Long.BYTES + Short.BYTES;

    private CommandCodec() {}

    /**
     * Encodes a command.
     *
     * @throws IllegalArgumentException the key is empty or too long
     */
    public static byte[] encode(Command command) {
        byte[] key = command.key().getBytes(StandardCharsets.UTF_8);
        if (key.length == 0 || key.length > MAX_KEY_BYTES) {
            throw new IllegalArgumentException("a key has 1 to " + MAX_KEY_BYTES + " bytes, this one has " + key.length);
        }
        boolean expects = command.expected() != null;
        return ByteBuffer.allocate(FIXED_BYTES + key.length)
            .put(MAGIC)
            .put(VERSION)
            .put(command.kind().code)
            .put((byte) (expects ? 1 : 0))
            .putLong(command.id().process())
            .putLong(command.id().number())
            .putLong(command.value())
            .putLong(expects ? command.expected() : 0L)
            .putShort((short) key.length)
            .put(key)
            .array();
    }

    /**
     * Decodes the body of a log entry.
     *
     * @throws IllegalArgumentException the body is not a command of this format; the message shows the difference
     */
    public static Command decode(byte[] body) {
        ByteBuffer in = ByteBuffer.wrap(body);
        try {
            expect("magic", in.get(), MAGIC);
            expect("version", in.get(), VERSION);
            Command.Kind kind = kind(in.get());
            byte expects = in.get();
            OpId id = new OpId(in.getLong(), in.getLong());
            long value = in.getLong();
            long expected = in.getLong();
            byte[] key = new byte[Short.toUnsignedInt(in.getShort())];
            if (key.length != in.remaining()) {
                throw new IllegalArgumentException("key length " + key.length + ", but " + in.remaining() + " bytes follow");
            }
            in.get(key);
            return new Command(id, kind, new String(key, StandardCharsets.UTF_8), value, expects == 1 ? expected : null);
        } catch (BufferUnderflowException e) {
            throw new IllegalArgumentException("the entry ends early, after " + body.length + " bytes", e);
        }
    }

    private static void expect(String what, byte actual, byte expected) {
        if (actual != expected) {
            throw new IllegalArgumentException(what + " is " + actual + ", expected " + expected);
        }
    }

    private static Command.Kind kind(byte code) {
        for (Command.Kind kind : Command.Kind.values()) {
            if (kind.code == code) {
                return kind;
            }
        }
        throw new IllegalArgumentException("unknown kind " + code);
    }
}
