package io.labrys.dledger;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32;

/**
 * The file of a snapshot: written whole or not at all, and refused if a single byte of it is not as written.
 *
 * <p>Layout, big-endian: magic (4 bytes), CRC-32 of the payload (8), payload length (4), payload. The payload is the number of
 * registers (4), then for each, in the order of keys, the key (modified UTF-8) and its value (8). A save goes to a temporary
 * file, is synced, and is then renamed, so that a crash leaves the old file, or none, or the new one.
 */
final class SnapshotFile {
    private static final int MAGIC = 0x4C425231; // "LBR1"
    private static final int HEAD_BYTES = 4 + 8 + 4;

    private SnapshotFile() {}

    static void save(Path file, Map<String, Long> values) throws IOException {
        byte[] payload = payload(values);
        ByteBuffer content = ByteBuffer.allocate(HEAD_BYTES + payload.length);
        content.putInt(MAGIC).putLong(crc(payload)).putInt(payload.length).put(payload).flip();
        Path temporary = file.resolveSibling(file.getFileName() + ".tmp");
        try (FileChannel channel = FileChannel.open(
                temporary, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE)) {
            while (content.hasRemaining()) {
                channel.write(content);
            }
            channel.force(true);
        }
        Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        try (FileChannel directory = FileChannel.open(file.getParent(), StandardOpenOption.READ)) {
            directory.force(true);
        }
    }

    /**
     * Reads what {@link #save} wrote.
     *
     * @throws IOException there is no such file, or it is not whole
     */
    static Map<String, Long> load(Path file) throws IOException {
        ByteBuffer content = ByteBuffer.wrap(Files.readAllBytes(file));
        if (content.remaining() < HEAD_BYTES || content.getInt() != MAGIC) {
            throw new IOException(file + " is no snapshot: its head is missing or another's");
        }
        long crc = content.getLong();
        int length = content.getInt();
        if (length != content.remaining()) {
            throw new IOException(file + " is torn: its payload should have " + length + " bytes but has " + content.remaining());
        }
        byte[] payload = new byte[length];
        content.get(payload);
        if (crc(payload) != crc) {
            throw new IOException(file + " is damaged: its checksum does not match");
        }
        Map<String, Long> values = new HashMap<>();
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(payload))) {
            int count = in.readInt();
            for (int i = 0; i < count; i++) {
                values.put(in.readUTF(), in.readLong());
            }
        }
        return values;
    }

    private static byte[] payload(Map<String, Long> values) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeInt(values.size());
            for (Map.Entry<String, Long> entry : new TreeMap<>(values).entrySet()) {
                out.writeUTF(entry.getKey());
                out.writeLong(entry.getValue());
            }
        }
        return bytes.toByteArray();
    }

    private static long crc(byte[] bytes) {
        CRC32 crc = new CRC32();
        crc.update(bytes);
        return crc.getValue();
    }
}
