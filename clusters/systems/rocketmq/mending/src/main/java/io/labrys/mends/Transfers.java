package io.labrys.mends;

import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import io.openmessaging.storage.dledger.protocol.LeadershipTransferRequest;
import io.openmessaging.storage.dledger.protocol.LeadershipTransferResponse;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.remoting.InvokeCallback;
import org.apache.rocketmq.remoting.netty.ResponseFuture;

/** What the mended service of requests calls; a jar with this mend has this class. */
public final class Transfers implements InvokeCallback {
    private final InvokeCallback released;
    private final LeadershipTransferRequest request;
    private final CompletableFuture<LeadershipTransferResponse> answer;

    private Transfers(
        InvokeCallback released, LeadershipTransferRequest request, CompletableFuture<LeadershipTransferResponse> answer) {
        this.released = released;
        this.request = request;
        this.answer = answer;
    }

    /** Returns a callback that completes the answer to a transfer also if the request cannot be sent. */
    public static InvokeCallback answered(
        InvokeCallback released, LeadershipTransferRequest request, CompletableFuture<LeadershipTransferResponse> answer) {
        return new Transfers(released, request, answer);
    }

    @Override
    public void operationComplete(ResponseFuture future) {
        released.operationComplete(future);
    }

    /** Is a method of the interface since RocketMQ 5.1.1. Its client calls it, e.g. if no connection opens. */
    public void operationFail(Throwable failure) {
        LeadershipTransferResponse response = new LeadershipTransferResponse();
        response.copyBaseInfo(request);
        response.setCode(DLedgerResponseCode.NETWORK_ERROR.getCode());
        answer.complete(response);
    }
}
