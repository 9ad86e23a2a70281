package io.labrys.dledger.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.openmessaging.storage.dledger.entry.DLedgerEntry;
import io.openmessaging.storage.dledger.exception.DLedgerException;
import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RegisterStateMachineTest {
    private final RegisterState state = new RegisterState();
    private final WaitingAnswers waiting = new WaitingAnswers();
    private final List<DLedgerException> fatal = new ArrayList<>();
    private final RegisterStateMachine machine = new RegisterStateMachine("g", "n1", state, waiting, fatal::add, 0);

    @TempDir
    private Path directory;

    private static DLedgerEntry entry(long index, byte[] body) {
        DLedgerEntry entry = new DLedgerEntry();
        entry.setIndex(index);
        entry.setBody(body);
        return entry;
    }

    private static byte[] put(OpId id, String key, long value) {
        return CommandCodec.encode(new Command(id, Command.Kind.PUT, key, value, null));
    }

    /** A command's answer goes to the library, and to the pending write in this process. */
    @Test
    void answers() {
        OpId id = new OpId(1, 1);
        waiting.expect(id);
        Answer answer = machine.apply(entry(0, put(id, "a", 5)));
        assertEquals(new Answer(true, 5L, 0), answer);
        assertEquals(answer, waiting.take(id));
    }

    /** Entries that are no commands, empty ones included, never throw: they are skipped and counted. */
    @Test
    void foreignEntries() {
        assertNull(machine.apply(entry(0, new byte[0])));
        assertNull(machine.apply(entry(1, "junk from elsewhere".getBytes())));
        assertEquals(2, machine.foreignEntries());
        assertEquals(1, machine.dump(() -> -1).index());
    }

    /** An entry that is delivered again changes nothing and is counted. */
    @Test
    void repeatedEntries() {
        machine.apply(entry(0, put(new OpId(1, 1), "a", 5)));
        machine.apply(entry(1, put(new OpId(1, 2), "a", 6)));
        assertNull(machine.apply(entry(0, put(new OpId(1, 1), "a", 5))));
        assertEquals(6L, state.get("a"));
        assertEquals(1, machine.repeatedEntries());
    }

    /** A dump's index is the larger one of the library's index and the last command's index. */
    @Test
    void dumpIndex() {
        machine.apply(entry(4, put(new OpId(1, 1), "a", 5)));
        assertEquals(new RegisterState.Copy(7, Map.of("a", 5L)), machine.dump(() -> 7));
        assertEquals(new RegisterState.Copy(4, Map.of("a", 5L)), machine.dump(() -> 2));
    }

    /** A loaded snapshot has the index of its metadata, which can be larger than the last command's. */
    @Test
    void snapshot() {
        machine.apply(entry(4, put(new OpId(1, 1), "a", 5)));
        assertTrue(machine.save(directory));
        RegisterState other = new RegisterState();
        RegisterStateMachine replica = new RegisterStateMachine("g", "n2", other, new WaitingAnswers(), fatal::add, 0);
        assertTrue(replica.load(directory, 6));
        assertEquals(new RegisterState.Copy(6, Map.of("a", 5L)), other.copy());
        assertEquals(1, machine.snapshotsSaved());
        assertEquals(1, replica.snapshotsLoaded());
    }

    /** A torn snapshot, one with older metadata than data, and a missing one are refused; the state stays. */
    @Test
    void refusedSnapshots() throws IOException {
        machine.apply(entry(4, put(new OpId(1, 1), "a", 5)));
        assertTrue(machine.save(directory));
        assertFalse(machine.load(directory, 3));
        Path data = directory.resolve("data");
        byte[] whole = Files.readAllBytes(data);
        Files.write(data, Arrays.copyOf(whole, whole.length - 1));
        assertFalse(machine.load(directory, 4));
        assertFalse(machine.load(directory.resolve("nowhere"), 4));
        assertEquals(0, machine.snapshotsLoaded());
        assertEquals(5L, state.get("a"));
    }

    /** If a snapshot cannot be written, the result is false, without an exception. */
    @Test
    void saveFails() {
        assertFalse(machine.save(directory.resolve("nowhere")));
        assertEquals(0, machine.snapshotsSaved());
    }

    /** When the library gives up, the process gets the error. */
    @Test
    void errors() {
        DLedgerException error = new DLedgerException(DLedgerResponseCode.LOAD_SNAPSHOT_ERROR, "gone");
        machine.onError(error);
        assertSame(error, fatal.get(0));
        assertEquals("g#n1", machine.getBindDLedgerId());
    }
}
