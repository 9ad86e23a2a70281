package io.labrys.dledger.read;

import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.EXPIRED_TERM;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.LEADER_PENDING_FULL;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.LEADER_TRANSFERRING;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.NETWORK_ERROR;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.NOT_LEADER;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.SUCCESS;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.TERM_NOT_READY;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.TIMEOUT;

import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Linearizable reads without a log entry each: the ReadIndex protocol (D. Ongaro's dissertation, 6.4), on DLedger's parts.
 *
 * <p>The law: a read that succeeds sees every write that was answered before the read came in. The steps that make it so:
 * <ol>
 *   <li>This leadership has committed an entry of its own term. Then its commit index covers all that earlier leaders have
 *       answered. The proof must come from this process and this leadership: a node may be elected again in a term that its
 *       log already knows, so neither its last entry's term nor its applied term is a proof.
 *   <li>The commit index is noted: it covers all that this leader has answered.
 *   <li>After that, a quorum says that it is still in this term: so no later leader had been elected, nor answered a write,
 *       when the read came in.
 *   <li>The register is read after the noted index is applied.
 * </ol>
 *
 * <p>One round of heartbeats is under way at a time; reads that come meanwhile share the next one. And no member has more than
 * {@value #MAX_UNANSWERED} heartbeats of ours unanswered, since in a partition each may hold a thread of the library for
 * seconds.
 *
 * <p>All state lives in the {@link Turns}, except {@link #leadership}, which the elector's thread replaces at once.
 */
public final class ReadIndex implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ReadIndex.class);
    private static final long NOT_READY = -1;
    private static final long RETRY_MILLIS = 200;
    private static final long APPLY_POLL_MILLIS = 1;
    private static final long APPLY_LIMIT_MILLIS = 2000;
    private static final int MAX_WAITING = 10_000;
    private static final int MAX_UNANSWERED = 2;

    private final Raft raft;
    private final Function<String, Long> registers;
    private final Turns turns;
    private final long roundLimitMillis;
    private final AtomicReference<Leadership> leadership = new AtomicReference<>(new Leadership(NOT_READY));
    private final Map<String, Integer> unanswered = new HashMap<>();
    private List<Waiting> waiting = new ArrayList<>();
    private Round round;
    private boolean closed;

    /** One stay in one role. Compared by identity: a later stay in the same term is another. */
    private static final class Leadership {
        final long readyTerm;

        Leadership(long readyTerm) {
            this.readyTerm = readyTerm;
        }
    }

    private record Waiting(String key, CompletableFuture<Reading> reading) {}

    private static final class Round {
        final Leadership under;
        final long term;
        final long index;
        final List<Waiting> reads;
        int yes = 1;
        int outstanding;

        Round(Leadership under, long term, long index, List<Waiting> reads) {
            this.under = under;
            this.term = term;
            this.index = index;
            this.reads = reads;
        }
    }

    /**
     * Makes the reads of one node.
     *
     * @param raft the library
     * @param registers returns what a register holds, null for none; must not block
     * @param turns where all steps run
     * @param roundLimitMillis how long a round of heartbeats may take
     */
    public ReadIndex(Raft raft, Function<String, Long> registers, Turns turns, long roundLimitMillis) {
        this.raft = raft;
        this.registers = registers;
        this.turns = turns;
        this.roundLimitMillis = roundLimitMillis;
    }

    /** Takes notice of a new role. Called while the library holds its lock, so it only notes and returns. */
    public void roleChanged(long term, boolean leads) {
        Leadership now = new Leadership(NOT_READY);
        leadership.set(now);
        if (leads) {
            turns.soon(() -> makeReady(now, term));
        }
    }

    /** Returns the term in which this node leads and may answer reads; -1 if there is none. */
    public long readyTerm() {
        return leadership.get().readyTerm;
    }

    /** Reads a register. The future always completes normally. */
    public CompletableFuture<Reading> read(String key) {
        CompletableFuture<Reading> reading = new CompletableFuture<>();
        turns.soon(() -> {
            if (closed || waiting.size() >= MAX_WAITING) {
                reading.complete(Reading.failed(closed ? NOT_LEADER : LEADER_PENDING_FULL));
                return;
            }
            waiting.add(new Waiting(key, reading));
            startRound();
        });
        return reading;
    }

    /** Fails all reads, also those to come. */
    @Override
    public void close() {
        turns.soon(() -> {
            closed = true;
            fail(waiting, NOT_LEADER);
            if (round != null) {
                endRound(round, NOT_LEADER);
            }
        });
    }

    private void makeReady(Leadership mine, long term) {
        if (closed || leadership.get() != mine || !raft.leads() || raft.term() != term) {
            return;
        }
        raft.appendEmpty().thenAccept(code -> turns.soon(() -> {
            if (code == SUCCESS && raft.leads() && raft.term() == term) {
                if (leadership.compareAndSet(mine, new Leadership(term))) {
                    LOG.info("term {}: an entry of this leadership is committed, reads may begin", term);
                }
            } else {
                LOG.info("term {}: the first entry of this leadership ended with {}", term, code);
                turns.later(RETRY_MILLIS, () -> makeReady(mine, term));
            }
        }));
    }

    private void startRound() {
        if (round != null || waiting.isEmpty()) {
            return;
        }
        List<Waiting> reads = waiting;
        waiting = new ArrayList<>();
        Leadership under = leadership.get();
        long term = raft.term();
        DLedgerResponseCode refusal = refusal(under, term);
        if (refusal != null) {
            fail(reads, refusal);
            return;
        }
        Round started = new Round(under, term, raft.committedIndex(), reads);
        round = started;
        for (String member : raft.others()) {
            if (unanswered.merge(member, 1, Integer::sum) > MAX_UNANSWERED) {
                unanswered.merge(member, -1, Integer::sum);
                continue;
            }
            started.outstanding++;
            raft.heartbeat(member, term).thenAccept(code -> turns.soon(() -> answered(started, member, code)));
        }
        turns.later(roundLimitMillis, () -> endRound(started, NETWORK_ERROR));
        judge(started);
    }

    private DLedgerResponseCode refusal(Leadership under, long term) {
        if (!raft.leads()) {
            return NOT_LEADER;
        }
        if (raft.transferring()) {
            return LEADER_TRANSFERRING;
        }
        return under.readyTerm == term ? null : TERM_NOT_READY;
    }

    private void answered(Round of, String member, DLedgerResponseCode code) {
        unanswered.merge(member, -1, Integer::sum);
        of.outstanding--;
        if (code == EXPIRED_TERM) {
            endRound(of, NOT_LEADER);
            return;
        }
        if (code == SUCCESS) {
            of.yes++;
        }
        judge(of);
    }

    private void judge(Round of) {
        if (raft.quorum(of.yes)) {
            boolean still = leadership.get() == of.under && raft.leads() && raft.term() == of.term;
            endRound(of, still ? SUCCESS : NOT_LEADER);
        } else if (of.outstanding == 0) {
            endRound(of, NETWORK_ERROR);
        }
    }

    private void endRound(Round ended, DLedgerResponseCode code) {
        if (round != ended) {
            return;
        }
        round = null;
        if (code == SUCCESS) {
            answerWhenApplied(ended, turns.nowMillis() + APPLY_LIMIT_MILLIS);
        } else {
            fail(ended.reads, code);
        }
        startRound();
    }

    private void answerWhenApplied(Round ended, long deadlineMillis) {
        if (raft.appliedIndex() >= ended.index) {
            for (Waiting read : ended.reads) {
                read.reading.complete(Reading.of(registers.apply(read.key)));
            }
        } else if (turns.nowMillis() >= deadlineMillis) {
            LOG.warn("index {} was not applied in {} ms", ended.index, APPLY_LIMIT_MILLIS);
            fail(ended.reads, TIMEOUT);
        } else {
            turns.later(APPLY_POLL_MILLIS, () -> answerWhenApplied(ended, deadlineMillis));
        }
    }

    private static void fail(List<Waiting> reads, DLedgerResponseCode code) {
        for (Waiting read : reads) {
            read.reading.complete(Reading.failed(code));
        }
    }
}
