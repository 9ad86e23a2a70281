package io.labrys.dledger.state;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SnapshotFileTest {
    private static final RegisterState.Copy COPY =
        new RegisterState.Copy(41, new TreeMap<>(Map.of("a", 1L, "é", Long.MIN_VALUE, "z", -1L)));

    @TempDir
    private Path directory;
    private Path file;

    @BeforeEach
    void name() {
        file = directory.resolve("data");
    }

    /** A saved state can be loaded, also an empty one, and no temporary file stays. */
    @Test
    void roundTrip() throws IOException {
        for (RegisterState.Copy copy : List.of(COPY, new RegisterState.Copy(RegisterState.NOTHING, Map.of()))) {
            SnapshotFile.save(copy, file, 0);
            assertEquals(copy, SnapshotFile.load(file));
        }
        try (var names = Files.list(directory)) {
            assertEquals(1, names.count());
        }
    }

    /** With a least time, the first half of the file is on the disk for so long, under its temporary name. */
    @Test
    void slow() throws Exception {
        Path temporary = directory.resolve("data.tmp");
        Thread saving = new Thread(() -> assertDoesNotThrow(() -> SnapshotFile.save(COPY, file, 300)));
        long began = System.nanoTime();
        saving.start();
        long half = 0;
        while (half == 0 && saving.isAlive()) {
            half = Files.exists(temporary) ? Files.size(temporary) : 0;
        }
        assertFalse(Files.exists(file));
        saving.join();
        assertTrue(System.nanoTime() - began >= 300_000_000L);
        assertEquals(Files.size(file) / 2, half);
        assertEquals(COPY, SnapshotFile.load(file));
    }

    /** A file that is torn at any byte is refused. */
    @Test
    void torn() throws IOException {
        SnapshotFile.save(COPY, file, 0);
        byte[] whole = Files.readAllBytes(file);
        for (int length = 0; length < whole.length; length++) {
            Files.write(file, Arrays.copyOf(whole, length));
            assertThrows(DamagedSnapshotException.class, () -> SnapshotFile.load(file), "length " + length);
        }
    }

    /** A file of the right length with zeros at its end, as after a lost page, is refused. */
    @Test
    void zeroed() throws IOException {
        SnapshotFile.save(COPY, file, 0);
        byte[] bytes = Files.readAllBytes(file);
        Arrays.fill(bytes, bytes.length / 2, bytes.length, (byte) 0);
        Files.write(file, bytes);
        assertThrows(DamagedSnapshotException.class, () -> SnapshotFile.load(file));
    }

    /** A file with any one flipped bit is refused. */
    @Test
    void flipped() throws IOException {
        SnapshotFile.save(COPY, file, 0);
        byte[] bytes = Files.readAllBytes(file);
        for (int bit = 0; bit < bytes.length * 8; bit++) {
            bytes[bit / 8] ^= (byte) (1 << bit % 8);
            Files.write(file, bytes);
            assertThrows(DamagedSnapshotException.class, () -> SnapshotFile.load(file), "bit " + bit);
            bytes[bit / 8] ^= (byte) (1 << bit % 8);
        }
    }

    /** A file with bytes after its end is refused. */
    @Test
    void longer() throws IOException {
        SnapshotFile.save(COPY, file, 0);
        byte[] bytes = Files.readAllBytes(file);
        Files.write(file, Arrays.copyOf(bytes, bytes.length + 1));
        assertThrows(DamagedSnapshotException.class, () -> SnapshotFile.load(file));
    }

    /** The remains of an interrupted save do not disturb the next one. */
    @Test
    void leftOver() throws IOException {
        Files.write(directory.resolve("data.tmp"), new byte[1000]);
        SnapshotFile.save(COPY, file, 0);
        assertEquals(COPY, SnapshotFile.load(file));
    }

    /** A state that the library cannot send is not saved, and an older file stays unchanged. */
    @Test
    void tooLarge() throws IOException {
        SnapshotFile.save(COPY, file, 0);
        byte[] before = Files.readAllBytes(file);
        Map<String, Long> large = new TreeMap<>();
        String longKey = "x".repeat(1000);
        for (long i = 0; i * 1000 < SnapshotFile.MAX_BYTES; i++) {
            large.put(longKey + i, i);
        }
        IOException refusal = assertThrows(IOException.class,
            () -> SnapshotFile.save(new RegisterState.Copy(1, large), file, 0));
        assertTrue(refusal.getMessage().contains("cannot send"), refusal.getMessage());
        assertArrayEquals(before, Files.readAllBytes(file));
        assertFalse(Files.exists(directory.resolve("data.tmp")));
    }

    /** A missing file is an ordinary I/O error. */
    @Test
    void missing() {
        assertThrows(IOException.class, () -> SnapshotFile.load(file));
    }
}
