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
 * Joins the library to {@link RegisterState}: applies committed entries, saves and loads snapshots.
 *
 * <p>The law: nothing that an entry holds may make {@code onApply} throw. The library would deliver the whole batch again,
 * and a cas that is evaluated twice answers wrongly. An entry that is no command of ours is skipped, by every replica alike,
 * and counted; an entry that comes again is skipped by its index, and counted.
 */
public final class RegisterStateMachine implements StateMachine {
    private static final Logger LOG = LoggerFactory.getLogger(RegisterStateMachine.class);

    private final String id;
    private final RegisterState state;
    private final WaitingAnswers waiting;
    private final Consumer<DLedgerException> fatal;
    private final AtomicLong foreign = new AtomicLong();
    private final AtomicLong repeated = new AtomicLong();
    private final AtomicLong saved = new AtomicLong();
    private final AtomicLong loaded = new AtomicLong();

    /**
     * Makes the state machine of one node.
     *
     * @param group the Raft group
     * @param self this node's id in it
     * @param state what entries are applied to
     * @param waiting where answers are kept for writes of this process
     * @param fatal is told when the library gives up; the process should end, a node that half works helps nobody
     */
    public RegisterStateMachine(String group, String self, RegisterState state, WaitingAnswers waiting,
        Consumer<DLedgerException> fatal) {
        this.id = generateDLedgerId(group, self);
        this.state = state;
        this.waiting = waiting;
        this.fatal = fatal;
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

    /** Applies one entry; returns null where there is nothing to answer. */
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

    /** Saves a snapshot into a directory; false, with a log line, if that failed. */
    boolean save(Path directory) {
        try {
            SnapshotFile.save(state.copy(), directory.resolve(SnapshotManager.SNAPSHOT_DATA_FILE));
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
     * Loads a snapshot; false, with a log line, if it is damaged.
     *
     * @param index the last index that the snapshot's own description says it contains; entries of the library itself make it
     *     larger than that of the last command, never smaller
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
     * Copies the registers with the index that they belong to.
     *
     * @param appliedIndex reads the library's applied index. It also counts entries that never come here, and rises only
     *     after a batch. So, with applying held still: if it is ahead of the last entry seen here, nothing between the two
     *     changes a register; if it is behind, the last entry seen here is the truth
     */
    public RegisterState.Copy dump(LongSupplier appliedIndex) {
        long applied = appliedIndex.getAsLong();
        RegisterState.Copy copy = state.copy();
        return new RegisterState.Copy(Math.max(applied, copy.index()), copy.registers());
    }

    /** Returns how many entries of the log were no command of ours. */
    public long foreignEntries() {
        return foreign.get();
    }

    /** Returns how many entries were delivered again. */
    public long repeatedEntries() {
        return repeated.get();
    }

    /** Returns how many snapshots were saved by this process. */
    public long snapshotsSaved() {
        return saved.get();
    }

    /** Returns how many snapshots were loaded by this process. */
    public long snapshotsLoaded() {
        return loaded.get();
    }
}
