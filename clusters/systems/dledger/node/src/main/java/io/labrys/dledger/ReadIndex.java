package io.labrys.dledger;

import io.openmessaging.storage.dledger.DLedgerLeaderElector.RoleChangeHandler;
import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.MemberState;
import io.openmessaging.storage.dledger.common.ReadClosure;
import io.openmessaging.storage.dledger.common.ReadMode;
import io.openmessaging.storage.dledger.common.Status;
import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import io.openmessaging.storage.dledger.protocol.HeartBeatRequest;
import io.openmessaging.storage.dledger.protocol.HeartBeatResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * ReadIndex (Ongaro's dissertation, 6.4) on the library's public pieces; DLedger 0.4.0 names this read mode but does not have it.
 *
 * <p>A read at a leader is answered from memory once three things are certain. First, an entry of this very leadership is
 * committed, so the commit index covers everything that was acknowledged before it ({@code readyTerm}, kept in memory only:
 * after a restart a node may lead the same term again with a commit index that knows nothing). Second, after the read came
 * in, a quorum still followed this leader in its term: a round of heartbeats of our own. Third, the state machine has
 * applied what was committed when the read came in.
 *
 * <p>One round is in flight at a time and serves all reads that came before it began; later ones share the next. So a read to
 * unreachable peers costs no thread. All state belongs to one thread, {@code worker}; nothing here ever blocks a caller.
 */
final class ReadIndex implements RoleChangeHandler {
    private static final Logger LOG = LoggerFactory.getLogger(ReadIndex.class);
    private static final long CONFIRM_RETRY_MS = 200;
    private static final long APPLY_POLL_MS = 1;
    private static final long APPLY_LIMIT_NS = TimeUnit.SECONDS.toNanos(2);
    private static final int SELF_VOTE = 1;

    private final DLedgerServer server;
    private final MemberState state;
    private final long roundLimitMs;
    private final ScheduledExecutorService worker = Executors.newSingleThreadScheduledExecutor(task -> {
        Thread thread = new Thread(task, "read-index");
        thread.setDaemon(true);
        return thread;
    });

    /** Raised at each change of role, by whatever thread the library uses; what was learned in an older epoch is void. */
    private volatile long epoch;
    /** The term of this leadership once an entry of it is committed; -1 before. */
    private volatile long readyTerm = -1;

    private List<Read> gathering = new ArrayList<>();
    private boolean roundInFlight;

    /** A read that waits. It completes with the code SUCCESS when the registers may be read. */
    private record Read(long term, long epoch, long index, CompletableFuture<DLedgerResponseCode> permitted) {}

    ReadIndex(DLedgerServer server, int heartbeatMs) {
        this.server = server;
        this.state = server.getMemberState();
        this.roundLimitMs = Math.max(200, heartbeatMs);
    }

    /** Returns the term for which this leader may serve reads, or -1. */
    long readyTerm() {
        return readyTerm;
    }

    /**
     * Asks to read. Completes with SUCCESS, after which the registers hold everything that was acknowledged before the call;
     * or with the reason why this node cannot tell.
     */
    CompletableFuture<DLedgerResponseCode> permit() {
        CompletableFuture<DLedgerResponseCode> permitted = new CompletableFuture<>();
        worker.execute(() -> gather(permitted));
        return permitted;
    }

    @Override
    public void handle(long term, MemberState.Role role) {
        // Called while the library holds its own lock: note it, and leave the rest to the worker.
        readyTerm = -1;
        long current = ++epoch;
        if (role == MemberState.Role.LEADER) {
            worker.execute(() -> confirm(term, current));
        }
    }

    @Override
    public void startup() {}

    @Override
    public void shutdown() {
        worker.shutdownNow();
    }

    private boolean leads(long term, long atEpoch) {
        return epoch == atEpoch && state.isLeader() && state.currTerm() == term;
    }

    /** Commits an entry of this leadership, however often it takes. */
    private void confirm(long term, long atEpoch) {
        if (!leads(term, atEpoch)) {
            return;
        }
        server.handleRead(ReadMode.RAFT_LOG_READ, new ReadClosure() {
            @Override
            public void done(Status status) {
                worker.execute(() -> {
                    if (status.isOk() && leads(term, atEpoch)) {
                        readyTerm = term;
                        LOG.info("reads are served in term {}", term);
                    } else {
                        worker.schedule(() -> confirm(term, atEpoch), CONFIRM_RETRY_MS, TimeUnit.MILLISECONDS);
                    }
                });
            }
        });
    }

    private void gather(CompletableFuture<DLedgerResponseCode> permitted) {
        long atEpoch = epoch;
        long term = state.currTerm();
        if (!state.isLeader()) {
            permitted.complete(DLedgerResponseCode.NOT_LEADER);
        } else if (state.getTransferee() != null) {
            permitted.complete(DLedgerResponseCode.LEADER_TRANSFERRING);
        } else if (readyTerm != term || !leads(term, atEpoch)) {
            permitted.complete(DLedgerResponseCode.TERM_NOT_READY);
        } else {
            gathering.add(new Read(term, atEpoch, state.getCommittedIndex(), permitted));
            startRound();
        }
    }

    private void startRound() {
        if (roundInFlight || gathering.isEmpty()) {
            return;
        }
        roundInFlight = true;
        List<Read> reads = gathering;
        gathering = new ArrayList<>();
        // Reads of an older term or epoch are refused after the round, by its own test of each.
        Round round = new Round(reads, state.currTerm());
        round.begin();
    }

    private void applied(Read read, long deadlineNs) {
        if (state.getAppliedIndex() >= read.index) {
            read.permitted.complete(DLedgerResponseCode.SUCCESS);
        } else if (System.nanoTime() - deadlineNs >= 0) {
            read.permitted.complete(DLedgerResponseCode.TIMEOUT);
        } else {
            worker.schedule(() -> applied(read, deadlineNs), APPLY_POLL_MS, TimeUnit.MILLISECONDS);
        }
    }

    /** One round of heartbeats. Its methods run on the worker. */
    private final class Round {
        private final List<Read> reads;
        private final long term;
        private int follow = SELF_VOTE;
        private boolean over;

        Round(List<Read> reads, long term) {
            this.reads = reads;
            this.term = term;
        }

        void begin() {
            if (state.isQuorum(follow)) { // a group of one has no one else to ask
                end(DLedgerResponseCode.SUCCESS);
                return;
            }
            worker.schedule(() -> end(DLedgerResponseCode.TIMEOUT), roundLimitMs, TimeUnit.MILLISECONDS);
            for (String peer : state.getPeerMap().keySet()) {
                if (!peer.equals(state.getSelfId())) {
                    ask(peer);
                }
            }
        }

        private void ask(String peer) {
            HeartBeatRequest request = new HeartBeatRequest();
            request.setGroup(state.getGroup());
            request.setLocalId(state.getSelfId());
            request.setRemoteId(peer);
            request.setLeaderId(state.getSelfId());
            request.setTerm(term);
            try {
                server.getDLedgerRpcService().heartBeat(request).whenComplete((answer, failed) ->
                        worker.execute(() -> count(answer, failed)));
            } catch (Exception failed) { // declared by the library's interface; a peer that cannot be asked does not count
                LOG.warn("no heartbeat could be sent to {}", peer, failed);
            }
        }

        private void count(HeartBeatResponse answer, Throwable failed) {
            if (over || failed != null || answer == null) {
                return;
            }
            if (answer.getCode() == DLedgerResponseCode.EXPIRED_TERM.getCode()) {
                end(DLedgerResponseCode.NOT_LEADER); // this peer has voted in a later term
            } else if (answer.getCode() == DLedgerResponseCode.SUCCESS.getCode() && state.isQuorum(++follow)) {
                end(DLedgerResponseCode.SUCCESS);
            }
        }

        private void end(DLedgerResponseCode code) {
            if (over) {
                return;
            }
            over = true;
            long deadlineNs = System.nanoTime() + APPLY_LIMIT_NS;
            for (Read read : reads) {
                if (code != DLedgerResponseCode.SUCCESS) {
                    read.permitted.complete(code);
                } else if (read.term != term || !leads(read.term, read.epoch)) {
                    read.permitted.complete(DLedgerResponseCode.NOT_LEADER);
                } else {
                    applied(read, deadlineNs);
                }
            }
            roundInFlight = false;
            startRound();
        }
    }
}
