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
 * <p>Every future completes. The library completes a closure within about three seconds, but can forget it when the term
 * changes. Then the limit of this class completes the future.
 */
public final class DLedgerRaft implements Raft {
    private static final Logger LOG = LoggerFactory.getLogger(DLedgerRaft.class);
    private static final long LIMIT_MILLIS = 4000;

    private final DLedgerServer server;
    private final MemberState member;
    private final List<String> others;

    /** Wraps {@code server}, which can start later. */
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
        } catch (Exception e) { // the library declares Exception
            LOG.warn("a heartbeat to {} could not be sent", id, e);
            return CompletableFuture.completedFuture(DLedgerResponseCode.NETWORK_ERROR);
        }
    }

    @Override
    public CompletableFuture<DLedgerResponseCode> appendEmpty() {
        return readLogged(() -> null).thenApply(Reading::code);
    }

    /**
     * Appends an empty entry, and reads after the node has applied it.
     *
     * @param value returns the value. The thread that applies entries calls it, or the library's check for late closures, when
     *     everything up to the empty entry is applied. It must not block
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
