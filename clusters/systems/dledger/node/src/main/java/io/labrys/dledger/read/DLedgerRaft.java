package io.labrys.dledger.read;

import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.MemberState;
import io.openmessaging.storage.dledger.common.ReadClosure;
import io.openmessaging.storage.dledger.common.Status;
import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import io.openmessaging.storage.dledger.protocol.HeartBeatRequest;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The library as {@link Raft}.
 *
 * <p>The law: every future completes, whatever the library forgets. It answers a closure within about three seconds, except
 * when a term changes in the wrong moment; then the limit here does it.
 */
public final class DLedgerRaft implements Raft {
    private static final Logger LOG = LoggerFactory.getLogger(DLedgerRaft.class);
    private static final long LIMIT_MILLIS = 4000;

    private final DLedgerServer server;
    private final MemberState member;
    private final List<String> others;

    /** Looks at {@code server}, which need not be started yet. */
    public DLedgerRaft(DLedgerServer server) {
        this.server = server;
        this.member = server.getMemberState();
        this.others = member.getPeerMap().keySet().stream().filter(id -> !id.equals(member.getSelfId())).sorted().toList();
    }

    @Override
    public boolean leads() {
        return member.isLeader();
    }

    @Override
    public boolean transferring() {
        return member.getTransferee() != null;
    }

    @Override
    public long term() {
        return member.currTerm();
    }

    @Override
    public long committedIndex() {
        return member.getCommittedIndex();
    }

    @Override
    public long appliedIndex() {
        return member.getAppliedIndex();
    }

    @Override
    public Collection<String> others() {
        return others;
    }

    @Override
    public boolean quorum(int members) {
        return member.isQuorum(members);
    }

    @Override
    public CompletableFuture<DLedgerResponseCode> heartbeat(String id, long term) {
        HeartBeatRequest request = new HeartBeatRequest();
        request.setGroup(member.getGroup());
        request.setLocalId(member.getSelfId());
        request.setRemoteId(id);
        request.setLeaderId(member.getSelfId());
        request.setTerm(term);
        try {
            return server.getDLedgerRpcService().heartBeat(request)
                .thenApply(response -> DLedgerResponseCode.valueOf(response.getCode()))
                .completeOnTimeout(DLedgerResponseCode.NETWORK_ERROR, LIMIT_MILLIS, TimeUnit.MILLISECONDS)
                .exceptionally(error -> {
                    LOG.warn("the answer of {} to a heartbeat could not be read", id, error);
                    return DLedgerResponseCode.NETWORK_ERROR;
                });
        } catch (Exception e) { // the library declares no less
            LOG.warn("a heartbeat to {} could not be sent", id, e);
            return CompletableFuture.completedFuture(DLedgerResponseCode.NETWORK_ERROR);
        }
    }

    @Override
    public CompletableFuture<DLedgerResponseCode> appendEmpty() {
        return readLogged(() -> null).thenApply(Reading::code);
    }

    /**
     * Appends an empty entry and reads when it has been applied.
     *
     * @param value gives the value; called by the thread that applies entries or by the library's check for late closures, when
     *     everything up to the empty entry is applied. Must not block
     */
    public CompletableFuture<Reading> readLogged(Supplier<Long> value) {
        CompletableFuture<Reading> reading = new CompletableFuture<>();
        try {
            server.handleRead(io.openmessaging.storage.dledger.common.ReadMode.RAFT_LOG_READ, new ReadClosure() {
                @Override
                public void done(Status status) {
                    reading.complete(status.isOk() ? Reading.of(value.get()) : Reading.failed(status.code));
                }
            });
        } catch (RuntimeException e) {
            LOG.error("an empty entry could not be appended", e);
            reading.complete(Reading.failed(DLedgerResponseCode.INTERNAL_ERROR));
        }
        return reading.completeOnTimeout(Reading.failed(DLedgerResponseCode.TIMEOUT), LIMIT_MILLIS, TimeUnit.MILLISECONDS);
    }
}
