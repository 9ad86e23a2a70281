package io.labrys.dledger.serve;

import io.labrys.dledger.read.ReadIndex;
import io.labrys.dledger.state.RegisterState;
import io.labrys.dledger.state.RegisterStateMachine;
import io.labrys.dledger.state.WaitingAnswers;
import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.MemberState;
import io.openmessaging.storage.dledger.snapshot.SnapshotManager;
import io.openmessaging.storage.dledger.store.DLedgerStore;
import java.lang.management.ManagementFactory;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/**
 * Returns this node's view of itself. It asks no other node and takes no lock of the library, so an isolated or stuck node
 * answers too. Role and term are of one moment. It reads the other fields one after the other, so they can be inconsistent.
 */
public final class StatusProcessor extends TypedProcessor<StatusRequest, StatusResponse> {
    private final RegisterState state;
    private final RegisterStateMachine machine;
    private final WaitingAnswers waiting;
    private final ReadIndex readIndex;
    private final KvProcessor kv;

    /** Makes the processor of one node. */
    public StatusProcessor(DLedgerServer server, Executor workers, RegisterState state, RegisterStateMachine machine,
        WaitingAnswers waiting, ReadIndex readIndex, KvProcessor kv) {
        super(server, workers);
        this.state = state;
        this.machine = machine;
        this.waiting = waiting;
        this.readIndex = readIndex;
        this.kv = kv;
    }

    @Override
    public Integer getRequestTypeCode() {
        return StatusRequest.TYPE;
    }

    @Override
    StatusResponse blank() {
        return new StatusResponse();
    }

    @Override
    CompletableFuture<StatusResponse> serve(StatusRequest request) {
        MemberState member = dLedgerServer.getMemberState();
        DLedgerStore store = dLedgerServer.getDLedgerStore();
        SnapshotManager snapshots = dLedgerServer.getFsmCaller().getSnapshotManager();
        StatusResponse status = blank();
        status.setCommittedIndex(member.getCommittedIndex());
        status.setAppliedIndex(member.getAppliedIndex());
        status.setAppliedTerm(member.getAppliedTerm());
        status.setLedgerEndIndex(member.getLedgerEndIndex());
        status.setLedgerEndTerm(member.getLedgerEndTerm());
        status.setLedgerBeforeBeginIndex(store.getLedgerBeforeBeginIndex());
        status.setReadyTerm(readIndex.readyTerm());
        status.setTransferee(member.getTransferee());
        status.setRegisters(state.size());
        status.setSnapshotIndex(snapshots == null ? -1 : snapshots.getLastSnapshotIndex());
        status.setSnapshotsSaved(machine.snapshotsSaved());
        status.setSnapshotsLoaded(machine.snapshotsLoaded());
        status.setRepairedAnswers(kv.repairedAnswers());
        status.setRepeatedEntries(machine.repeatedEntries());
        status.setForeignEntries(machine.foreignEntries());
        status.setWaitingWrites(waiting.size());
        status.setUptimeMillis(ManagementFactory.getRuntimeMXBean().getUptime());
        status.setWallClockMillis(System.currentTimeMillis());
        return CompletableFuture.completedFuture(status);
    }

    /**
     * Adds role, leader and term. The term only rises, so it was the same throughout if it is the same before and after. A
     * deposed leader would otherwise claim the term of its successor.
     */
    @Override
    void setView(StatusResponse status) {
        MemberState member = dLedgerServer.getMemberState();
        long term;
        do {
            term = member.currTerm();
            status.setRole(member.getRole().name().toLowerCase(Locale.ROOT));
            status.setLeaderId(member.getLeaderId());
        } while (term != member.currTerm());
        status.setTerm(term);
    }
}
