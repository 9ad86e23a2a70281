package io.labrys.dledger.serve;

import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.MemberState;
import io.openmessaging.storage.dledger.exception.DLedgerException;
import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineProcessor;
import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineRequest;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The common part of all request processors.
 *
 * <p>Every request gets an answer with a typed code within a limited time, since the library does not answer a request whose
 * future fails. Worker threads do the work: the calling thread also serves votes and heartbeats, so it is never blocked.
 *
 * @param <Q> the request, as JSON
 * @param <R> the answer, as JSON
 */
abstract class TypedProcessor<Q extends UserDefineRequest, R extends NodeResponse> extends UserDefineProcessor<Q, R> {
    private static final Logger LOG = LoggerFactory.getLogger(TypedProcessor.class);
    /** The time limit of a request. The library gives up a write after two to three seconds. */
    static final long LIMIT_MILLIS = 5000;

    private final Executor workers;
    private final MemberState member;

    TypedProcessor(DLedgerServer server, Executor workers) {
        super(server);
        this.workers = workers;
        this.member = server.getMemberState();
    }

    /** Returns an empty answer. */
    abstract R blank();

    /** Serves a request for this node, in a worker's thread. */
    abstract CompletableFuture<R> serve(Q request);

    @Override
    public final CompletableFuture<R> handleRequest(Q request) {
        if (request == null) {
            return done(refused(DLedgerResponseCode.UNEXPECTED_ARGUMENT, "the request has no body"));
        }
        if (!member.getGroup().equals(request.getGroup())) {
            return done(refused(DLedgerResponseCode.UNKNOWN_GROUP, "this is group " + member.getGroup()));
        }
        if (!member.getSelfId().equals(request.getRemoteId())) {
            return done(refused(DLedgerResponseCode.UNKNOWN_MEMBER, "this is member " + member.getSelfId()));
        }
        try {
            return CompletableFuture.supplyAsync(() -> serve(request), workers)
                .thenCompose(answer -> answer)
                .orTimeout(LIMIT_MILLIS, TimeUnit.MILLISECONDS)
                .exceptionally(this::failed)
                .thenApply(this::signed);
        } catch (RejectedExecutionException e) {
            return done(refused(DLedgerResponseCode.LEADER_PENDING_FULL, "too many requests wait; this one had no effect"));
        }
    }

    /** Returns an answer without a result, with the reason. */
    final R refused(DLedgerResponseCode code, String message) {
        R answer = blank();
        answer.setCode(code.getCode());
        answer.setMessage(message);
        return answer;
    }

    private R failed(Throwable error) {
        Throwable cause = error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
        if (cause instanceof DLedgerException refusal) {
            return refused(refusal.getCode(), refusal.getMessage());
        }
        if (cause instanceof TimeoutException) {
            LOG.warn("a request had no result after {} ms", LIMIT_MILLIS);
            String late = "no result after " + LIMIT_MILLIS + " ms; its effect is unknown";
            return refused(DLedgerResponseCode.TIMEOUT, late);
        }
        LOG.error("a request failed", cause);
        return refused(DLedgerResponseCode.INTERNAL_ERROR, cause.toString());
    }

    private CompletableFuture<R> done(R answer) {
        return CompletableFuture.completedFuture(signed(answer));
    }

    private R signed(R answer) {
        answer.setGroup(member.getGroup());
        answer.setLocalId(member.getSelfId());
        setView(answer);
        return answer;
    }

    /** Adds this node's view of the group to an answer: its leader and its term, which may belong to two moments. */
    void setView(R answer) {
        answer.setLeaderId(member.getLeaderId());
        answer.setTerm(member.currTerm());
    }
}
