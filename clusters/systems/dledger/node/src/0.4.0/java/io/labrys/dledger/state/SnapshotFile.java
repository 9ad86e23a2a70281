package io.labrys.dledger.state;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32C;

/**
 * Saves a {@link RegisterState.Copy} to a file and loads it.
 *
 * <p>After {@code save} returns, the file survives a crash or a power loss. {@code save} writes a temporary file, syncs it,
 * renames it, and syncs the directory. {@code load} detects a torn or altered file by its length and its checksum, and refuses
 * it.
 *
 * <p>The format, big-endian: 8 bytes magic, int64 length of the payload, int32 CRC-32C of the payload; payload: int64 index,
 * int32 number of registers, then for each, in key order, uint16 length of the key, key in UTF-8, int64 value.
 */
public final class SnapshotFile {
    /** The maximum size of a file. The library sends it as base64 in JSON in one frame, and a frame has at most 16 MiB. */
    public static final long MAX_BYTES = 12L << 20;

    private static final byte[] MAGIC = "LABRYSS1".getBytes(StandardCharsets.US_ASCII);
    private static final int HEADER_BYTES = MAGIC.length + Long.BYTES + Integer.BYTES;

    private SnapshotFile() {}

    /**
     * Saves {@code copy} as {@code file}.
     *
     * @param leastMillis the least time between the first and the second half of the file. A large state takes long to write; a
     *     small one does so with this
     * @throws IOException it cannot be written, or is larger than {@link #MAX_BYTES}; then {@code file} is unchanged
     */
    public static void save(RegisterState.Copy copy, Path file, long leastMillis) throws IOException {
        byte[] payload = payload(copy);
        if (HEADER_BYTES + payload.length > MAX_BYTES) {
            throw new IOException("a snapshot of " + copy.registers().size() + " registers has " + payload.length
                + " bytes, and the library cannot send more than " + MAX_BYTES);
        }
        ByteBuffer content = ByteBuffer.allocate(HEADER_BYTES + payload.length)
            .put(MAGIC)
            .putLong(payload.length)
            .putInt(checksum(payload))
            .put(payload)
            .flip();
        Path temporary = file.resolveSibling(file.getFileName() + ".tmp");
        try (FileChannel out = FileChannel.open(temporary, StandardOpenOption.CREATE, StandardOpenOption.WRITE,
            StandardOpenOption.TRUNCATE_EXISTING)) {
            int size = content.limit();
            write(out, content.limit(size / 2));
            pause(leastMillis);
            write(out, content.limit(size));
            out.force(true);
        }
        Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        try (FileChannel directory = FileChannel.open(file.toAbsolutePath().getParent(), StandardOpenOption.READ)) {
            directory.force(true);
        }
    }

    private static void write(FileChannel out, ByteBuffer content) throws IOException {
        while (content.hasRemaining()) {
            out.write(content);
        }
    }

    private static void pause(long millis) throws IOException {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("the writing of a snapshot was interrupted", e);
        }
    }

    /**
     * Loads a file of {@code save}.
     *
     * @throws DamagedSnapshotException the file is torn or altered
     * @throws IOException it cannot be read
     */
    public static RegisterState.Copy load(Path file) throws IOException {
        long size = Files.size(file);
        if (size < HEADER_BYTES || size > MAX_BYTES) {
            throw damaged(file, "it has " + size + " bytes");
        }
        ByteBuffer in = ByteBuffer.wrap(Files.readAllBytes(file));
        byte[] magic = new byte[MAGIC.length];
        in.get(magic);
        if (!Arrays.equals(magic, MAGIC)) {
            throw damaged(file, "it does not begin with the magic of a snapshot");
        }
        long length = in.getLong();
        int checksum = in.getInt();
        if (length != in.remaining()) {
            throw damaged(file, "its payload should have " + length + " bytes and has " + in.remaining());
        }
        byte[] payload = new byte[in.remaining()];
        in.get(payload);
        if (checksum(payload) != checksum) {
            throw damaged(file, "its checksum does not fit its payload");
        }
        try {
            return parse(ByteBuffer.wrap(payload));
        } catch (BufferUnderflowException e) {
            throw damaged(file, "its payload does not hold the registers that it announces");
        }
    }

    private static byte[] payload(RegisterState.Copy copy) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeLong(copy.index());
            out.writeInt(copy.registers().size());
            for (Map.Entry<String, Long> register : copy.registers().entrySet()) {
                byte[] key = register.getKey().getBytes(StandardCharsets.UTF_8);
                out.writeShort(key.length);
                out.write(key);
                out.writeLong(register.getValue());
            }
        }
        return bytes.toByteArray();
    }

    private static RegisterState.Copy parse(ByteBuffer in) {
        long index = in.getLong();
        int count = in.getInt();
        Map<String, Long> registers = new TreeMap<>();
        for (int i = 0; i < count; i++) {
            byte[] key = new byte[Short.toUnsignedInt(in.getShort())];
            in.get(key);
            registers.put(new String(key, StandardCharsets.UTF_8), in.getLong());
        }
        if (in.hasRemaining()) {
            throw new BufferUnderflowException();
        }
        return new RegisterState.Copy(index, registers);
    }

    private static int checksum(byte[] payload) {
        CRC32C crc = new CRC32C();
        crc.update(payload, 0, payload.length);
        return (int) crc.getValue();
    }

    private static DamagedSnapshotException damaged(Path file, String why) {
        return new DamagedSnapshotException("snapshot " + file + " is refused: " + why);
    }
}
