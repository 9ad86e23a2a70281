package io.labrys.dledger.state;

import io.openmessaging.storage.dledger.entry.DLedgerEntry;
import io.openmessaging.storage.dledger.exception.DLedgerException;
import io.openmessaging.storage.dledger.snapshot.SnapshotManager;
import io.openmessaging.storage.dledger.snapshot.SnapshotReader;
import io.openmessaging.storage.dledger.snapshot.SnapshotWriter;
import io.openmessaging.storage.dledger.statemachine.ApplyEntry;
import io.openmessaging.storage.dledger.statemachine.ApplyEntryIterator;
import io.openmessaging.storage.dledger.statemachine.StateMachine;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Connects the library to {@link RegisterState}: applies committed entries, and saves and loads snapshots.
 *
 * <p>{@code onApply} must not throw for any entry. The library would deliver the whole batch again, and a cas that is evaluated
 * twice has a wrong answer. Every replica skips and counts an entry that is no command. It also skips and counts a repeated
 * entry, which it knows by the index.
 */
public final class RegisterStateMachine implements StateMachine {
    private static final Logger LOG = LoggerFactory.getLogger(RegisterStateMachine.class);

    private final String id;
    private final RegisterState state;
    private final WaitingAnswers waiting;
    private final Consumer<DLedgerException> fatal;
    private final long snapshotMillis;
    private final AtomicLong foreign = new AtomicLong();
    private final AtomicLong repeated = new AtomicLong();
    private final AtomicLong saved = new AtomicLong();
    private final AtomicLong loaded = new AtomicLong();

    /**
     * Makes the state machine of one node.
     *
     * @param group the Raft group
     * @param self this node's id in it
     * @param state the state that entries change
     * @param waiting keeps the answers to writes of this process
     * @param fatal receives the error when the library gives up; the process should then end
     * @param snapshotMillis the least time in which it saves a snapshot
     */
    public RegisterStateMachine(String group, String self, RegisterState state, WaitingAnswers waiting,
        Consumer<DLedgerException> fatal, long snapshotMillis) {
        this.id = generateDLedgerId(group, self);
        this.state = state;
        this.waiting = waiting;
        this.fatal = fatal;
        this.snapshotMillis = snapshotMillis;
    }

    @Override
    @SuppressWarnings({"rawtypes", "unchecked"}) // the library's interface is raw
    public void onApply(ApplyEntryIterator entries) {
        while (entries.hasNext()) {
            ApplyEntry entry = entries.next();
            Answer answer = apply(entry.getEntry());
            if (answer != null) {
                entry.setResp(answer);
            }
        }
    }

    /** Applies one entry; returns null if it was skipped. */
    Answer apply(DLedgerEntry entry) {
        Command command;
        try {
            command = CommandCodec.decode(entry.getBody());
        } catch (IllegalArgumentException e) {
            if (state.skip(entry.getIndex())) {
                foreign.incrementAndGet();
                LOG.error("entry {} is no command and is skipped: {}", entry.getIndex(), e.getMessage());
            }
            return null;
        }
        Answer answer = state.apply(entry.getIndex(), command);
        if (answer == null) {
            repeated.incrementAndGet();
            LOG.warn("entry {} was delivered again and is skipped", entry.getIndex());
            return null;
        }
        waiting.give(command.id(), answer);
        return answer;
    }

    @Override
    public boolean onSnapshotSave(SnapshotWriter writer) {
        return save(Path.of(writer.getSnapshotStorePath()));
    }

    /**
     * Saves a snapshot into a directory. Returns false and logs the error if that fails.
     *
     * <p>The library logs the end of a snapshot ("saved successfully"), and not its beginning. So this class logs the beginning.
     */
    boolean save(Path directory) {
        RegisterState.Copy copy = state.copy();
        LOG.info("begins to save a snapshot up to index {} with {} registers", copy.index(), copy.registers().size());
        try {
            SnapshotFile.save(copy, directory.resolve(SnapshotManager.SNAPSHOT_DATA_FILE), snapshotMillis);
        } catch (IOException e) {
            LOG.error("a snapshot could not be saved in {}", directory, e);
            return false;
        }
        saved.incrementAndGet();
        return true;
    }

    @Override
    public boolean onSnapshotLoad(SnapshotReader reader) {
        return load(Path.of(reader.getSnapshotStorePath()), reader.getSnapshotMeta().getLastIncludedIndex());
    }

    /**
     * Loads a snapshot. Returns false and logs the error if it is damaged.
     *
     * @param index the last index in the snapshot's metadata. It can be larger than the index of the last command, because of
     *     the library's own entries, but never smaller
     */
    boolean load(Path directory, long index) {
        try {
            RegisterState.Copy copy = SnapshotFile.load(directory.resolve(SnapshotManager.SNAPSHOT_DATA_FILE));
            if (copy.index() > index) {
                throw new DamagedSnapshotException("snapshot " + directory + " is refused: its data contain index "
                    + copy.index() + ", its description ends at " + index);
            }
            state.replace(new RegisterState.Copy(index, copy.registers()));
        } catch (IOException e) {
            LOG.error("a snapshot could not be loaded from {}", directory, e);
            return false;
        }
        loaded.incrementAndGet();
        LOG.info("loaded the snapshot up to index {} with {} registers", index, state.size());
        return true;
    }

    @Override
    public void onShutdown() {
        LOG.info("state machine {} is shut down", id);
    }

    @Override
    public void onError(DLedgerException error) {
        fatal.accept(error);
    }

    @Override
    public String getBindDLedgerId() {
        return id;
    }

    /**
     * Copies the registers with their log index.
     *
     * @param appliedIndex reads the library's applied index. It also counts entries that the state machine does not receive,
     *     and rises only after a batch. If it is ahead of the state's index, the entries between change no register. If it is
     *     behind, the state's index is right
     */
    public RegisterState.Copy dump(LongSupplier appliedIndex) {
        long applied = appliedIndex.getAsLong();
        RegisterState.Copy copy = state.copy();
        return new RegisterState.Copy(Math.max(applied, copy.index()), copy.registers());
    }

    /** Returns the number of entries in the log that were no commands. */
    public long foreignEntries() {
        return foreign.get();
    }

    /** Returns the number of entries that the library delivered again. */
    public long repeatedEntries() {
        return repeated.get();
    }

    /** Returns the number of snapshots that this process saved. */
    public long snapshotsSaved() {
        return saved.get();
    }

    /** Returns the number of snapshots that this process loaded. */
    public long snapshotsLoaded() {
        return loaded.get();
    }
}
