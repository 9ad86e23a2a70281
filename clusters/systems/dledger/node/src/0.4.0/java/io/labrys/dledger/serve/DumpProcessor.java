package io.labrys.dledger.serve;

import io.labrys.dledger.state.RegisterState;
import io.labrys.dledger.state.RegisterStateMachine;
import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/**
 * Returns all registers. They are the state at exactly the index in the answer, so two nodes with the same index must return
 * the same registers.
 */
public final class DumpProcessor extends TypedProcessor<DumpRequest, DumpResponse> {
    /** With keys of ordinary length, this many registers fit into a frame of 16 MiB. */
    private static final int MAX_REGISTERS = 200_000;

    private final RegisterStateMachine machine;

    /** Makes the processor of one node. */
    public DumpProcessor(DLedgerServer server, Executor workers, RegisterStateMachine machine) {
        super(server, workers);
        this.machine = machine;
    }

    @Override
    public Integer getRequestTypeCode() {
        return DumpRequest.TYPE;
    }

    @Override
    DumpResponse blank() {
        return new DumpResponse();
    }

    @Override
    CompletableFuture<DumpResponse> serve(DumpRequest request) {
        RegisterState.Copy copy = machine.dump(dLedgerServer.getMemberState()::getAppliedIndex);
        if (copy.registers().size() > MAX_REGISTERS) {
            return CompletableFuture.completedFuture(refused(DLedgerResponseCode.UNSUPPORTED,
                copy.registers().size() + " registers do not fit into one answer"));
        }
        DumpResponse dump = blank();
        dump.setAppliedIndex(copy.index());
        dump.setRegisters(copy.registers());
        return CompletableFuture.completedFuture(dump);
    }
}
