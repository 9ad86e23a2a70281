package io.labrys.dledger;

import io.openmessaging.storage.dledger.exception.DLedgerException;
import io.openmessaging.storage.dledger.snapshot.SnapshotManager;
import io.openmessaging.storage.dledger.snapshot.SnapshotReader;
import io.openmessaging.storage.dledger.snapshot.SnapshotWriter;
import io.openmessaging.storage.dledger.statemachine.ApplyEntry;
import io.openmessaging.storage.dledger.statemachine.ApplyEntryIterator;
import io.openmessaging.storage.dledger.statemachine.StateMachine;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Applies committed log entries to the registers.
 *
 * <p>{@link #onApply} never throws: the library counts a batch as applied only when it is through, so an exception would make
 * it apply the batch again, and a compare-and-set applied twice would be a fault of ours.
 *
 * <p>The library may complete a write's closure without the state machine's answer, if the entry is applied before the closure
 * is registered. So the answers to commands that this process submitted are kept under their ids until they are collected.
 */
final class RegisterStateMachine implements StateMachine {
    private static final Logger LOG = LoggerFactory.getLogger(RegisterStateMachine.class);
    private static final Registers.Result NOT_YET = new Registers.Result(false, null);

    private final Registers registers = new Registers();
    private final Map<Long, Registers.Result> waiting = new ConcurrentHashMap<>();
    private final AtomicLong snapshotsSaved = new AtomicLong();
    private final AtomicLong snapshotsLoaded = new AtomicLong();
    private volatile long lastEntryIndex = -1;
    private final String bindId;

    RegisterStateMachine(String bindId) {
        this.bindId = bindId;
    }

    /** Says that the answer to the command with this id will be collected. Called before the command is submitted. */
    void expect(long id) {
        waiting.put(id, NOT_YET);
    }

    /** Returns the answer to an expected command and forgets it; null if it was not applied here yet. */
    Registers.Result collect(long id) {
        Registers.Result result = waiting.remove(id);
        return result == NOT_YET ? null : result;
    }

    Registers registers() {
        return registers;
    }

    /** Returns the index of the last command that was applied; entries of the library's own do not count. */
    long lastEntryIndex() {
        return lastEntryIndex;
    }

    long snapshotsSaved() {
        return snapshotsSaved.get();
    }

    long snapshotsLoaded() {
        return snapshotsLoaded.get();
    }

    @Override
    @SuppressWarnings({"rawtypes", "unchecked"}) // the library's iterator is raw
    public void onApply(ApplyEntryIterator entries) {
        while (entries.hasNext()) {
            ApplyEntry entry = entries.next();
            Command.decode(entry.getEntry().getBody()).ifPresent(command -> {
                Registers.Result result = registers.apply(command);
                waiting.computeIfPresent(command.id(), (id, before) -> result);
                entry.setResp(result);
            });
            lastEntryIndex = entry.getEntry().getIndex();
        }
    }

    @Override
    public boolean onSnapshotSave(SnapshotWriter writer) {
        try {
            SnapshotFile.save(data(writer.getSnapshotStorePath()), registers.copy());
        } catch (IOException failed) {
            LOG.error("the snapshot could not be saved", failed);
            return false;
        }
        snapshotsSaved.incrementAndGet();
        return true;
    }

    @Override
    public boolean onSnapshotLoad(SnapshotReader reader) {
        try {
            registers.replace(SnapshotFile.load(data(reader.getSnapshotStorePath())));
        } catch (IOException failed) {
            LOG.error("the snapshot could not be loaded", failed);
            return false;
        }
        lastEntryIndex = reader.getSnapshotMeta().getLastIncludedIndex();
        snapshotsLoaded.incrementAndGet();
        return true;
    }

    @Override
    public void onShutdown() {
        LOG.info("the state machine ends after entry {}", lastEntryIndex);
    }

    @Override
    public void onError(DLedgerException error) {
        LOG.error("FATAL the library gave up the state machine", error);
    }

    @Override
    public String getBindDLedgerId() {
        return bindId;
    }

    private static Path data(String directory) {
        return Path.of(directory, SnapshotManager.SNAPSHOT_DATA_FILE);
    }
}
