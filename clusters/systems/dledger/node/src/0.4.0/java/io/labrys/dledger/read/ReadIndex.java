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
 * Linearizable reads without a log entry each: the ReadIndex protocol (D. Ongaro's dissertation, 6.4) on top of DLedger.
 *
 * <p>A read that succeeds sees every write that was answered before the node received the read. The steps:
 * <ol>
 *   <li>The leader commits an entry of its own term. Then its commit index covers all writes that earlier leaders have
 *       answered. The proof must come from this process and this leadership. A node can become leader again in a term that its
 *       log already has, so neither the term of its last entry nor its applied term is a proof.
 *   <li>The leader notes its commit index, which covers all writes that it has answered.
 *   <li>After that, a quorum answers heartbeats in this term. So no later leader existed, or answered a write, when the node
 *       received the read.
 *   <li>The leader reads the register after it has applied the noted index.
 * </ol>
 *
 * <p>Only one round of heartbeats runs at a time, and reads that arrive meanwhile share the next round. Each member has at most
 * {@value #MAX_UNANSWERED} unanswered heartbeats of ours. In a partition each one can block a thread of the library for
 * seconds.
 *
 * <p>Only tasks of the {@link Turns} use the state, except {@link #leadership}, which the elector's thread replaces at once.
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

    /** One period in one role. Compared by identity: a later period in the same term is another one. */
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
     * @param registers returns the value of a register, null if it does not exist; must not block
     * @param turns runs all steps
     * @param roundLimitMillis the time limit of a round of heartbeats
     */
    public ReadIndex(Raft raft, Function<String, Long> registers, Turns turns, long roundLimitMillis) {
        this.raft = raft;
        this.registers = registers;
        this.turns = turns;
        this.roundLimitMillis = roundLimitMillis;
    }

    /** Handles a change of the role. The library holds its lock during the call, so this only schedules the work. */
    public void roleChanged(long term, boolean leads) {
        Leadership now = new Leadership(NOT_READY);
        leadership.set(now);
        if (leads) {
            turns.soon(() -> makeReady(now, term));
        }
    }

    /** Returns the term in which this node leads and can answer reads; -1 if there is none. */
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

    /** Fails all waiting and future reads. */
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
