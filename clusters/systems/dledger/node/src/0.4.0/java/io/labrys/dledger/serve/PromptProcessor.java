package io.labrys.dledger.serve;

import io.labrys.dledger.Promptness;
import io.openmessaging.storage.dledger.DLedgerServer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/** Turns on {@link Promptness}, for the final reads of a test. */
public final class PromptProcessor extends TypedProcessor<PromptRequest, NodeResponse> {
    private final Promptness promptness;

    /** Makes the processor of one node. */
    public PromptProcessor(DLedgerServer server, Executor workers, Promptness promptness) {
        super(server, workers);
        this.promptness = promptness;
    }

    @Override
    public Integer getRequestTypeCode() {
        return PromptRequest.TYPE;
    }

    @Override
    NodeResponse blank() {
        return new NodeResponse();
    }

    @Override
    CompletableFuture<NodeResponse> serve(PromptRequest request) {
        promptness.turnOn();
        return CompletableFuture.completedFuture(blank());
    }
}
