package io.labrys.dledger;

import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.MemberState;
import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineProcessor;
import java.lang.management.ManagementFactory;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;

/** Serves {@link StatusRequest}, on any role, from memory. */
final class StatusProcessor extends UserDefineProcessor<StatusRequest, StatusResponse> {
    private final RegisterStateMachine machine;
    private final ReadIndex readIndex;

    StatusProcessor(DLedgerServer server, RegisterStateMachine machine, ReadIndex readIndex) {
        super(server);
        this.machine = machine;
        this.readIndex = readIndex;
    }

    @Override
    public Integer getRequestTypeCode() {
        return StatusRequest.TYPE;
    }

    @Override
    public CompletableFuture<StatusResponse> handleRequest(StatusRequest request) {
        DLedgerResponseCode code = Answers.addressed(dLedgerServer, request);
        StatusResponse status = Answers.fill(dLedgerServer, new StatusResponse(), code);
        if (code == DLedgerResponseCode.SUCCESS) {
            MemberState state = dLedgerServer.getMemberState();
            status.setRole(state.getRole().name().toLowerCase(Locale.ROOT));
            status.setCommittedIndex(state.getCommittedIndex());
            status.setAppliedIndex(state.getAppliedIndex());
            status.setLedgerBeforeBeginIndex(dLedgerServer.getDLedgerStore().getLedgerBeforeBeginIndex());
            status.setLedgerEndIndex(dLedgerServer.getDLedgerStore().getLedgerEndIndex());
            status.setLedgerEndTerm(dLedgerServer.getDLedgerStore().getLedgerEndTerm());
            status.setReadyTerm(readIndex.readyTerm());
            status.setTransferee(state.getTransferee());
            status.setSnapshotsSaved(machine.snapshotsSaved());
            status.setSnapshotsLoaded(machine.snapshotsLoaded());
            status.setKeys(machine.registers().size());
            status.setUptimeMs(ManagementFactory.getRuntimeMXBean().getUptime());
        }
        return CompletableFuture.completedFuture(status);
    }
}
