package io.labrys.dledger;

import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineProcessor;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * Serves {@link DumpRequest}.
 *
 * <p>The registers and the index must belong together. The library raises its applied index only after a batch, so a copy
 * is good if that index did not move while it was made and no entry beyond it had been applied. While entries are being
 * applied that may fail; the answer is then TIMEOUT, and the caller asks again.
 */
final class DumpProcessor extends UserDefineProcessor<DumpRequest, DumpResponse> {
    private static final int TRIES = 5;

    private final RegisterStateMachine machine;

    DumpProcessor(DLedgerServer server, RegisterStateMachine machine) {
        super(server);
        this.machine = machine;
    }

    @Override
    public Integer getRequestTypeCode() {
        return DumpRequest.TYPE;
    }

    @Override
    public CompletableFuture<DumpResponse> handleRequest(DumpRequest request) {
        DLedgerResponseCode code = Answers.addressed(dLedgerServer, request);
        DumpResponse dump = new DumpResponse();
        if (code == DLedgerResponseCode.SUCCESS && !copyInto(dump)) {
            code = DLedgerResponseCode.TIMEOUT;
        }
        return CompletableFuture.completedFuture(Answers.fill(dLedgerServer, dump, code));
    }

    private boolean copyInto(DumpResponse dump) {
        for (int attempt = 0; attempt < TRIES; attempt++) {
            long before = dLedgerServer.getMemberState().getAppliedIndex();
            Map<String, Long> values = machine.registers().copy();
            long entry = machine.lastEntryIndex();
            if (entry <= before && dLedgerServer.getMemberState().getAppliedIndex() == before) {
                dump.setValues(values);
                dump.setAppliedIndex(before);
                return true;
            }
        }
        return false;
    }
}
