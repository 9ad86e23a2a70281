package io.labrys.dledger.read;

import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.EXPIRED_TERM;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.LEADER_TRANSFERRING;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.NETWORK_ERROR;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.NOT_LEADER;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.SUCCESS;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.TERM_NOT_READY;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.TIMEOUT;
import static io.openmessaging.storage.dledger.protocol.DLedgerResponseCode.WAIT_QUORUM_ACK_TIMEOUT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ReadIndexTest {
    private static final long ROUND_MILLIS = 500;

    private final FakeRaft raft = new FakeRaft();
    private final FakeTurns turns = new FakeTurns();
    private final Map<String, Long> registers = new HashMap<>();
    private final ReadIndex reads = new ReadIndex(raft, registers::get, turns, ROUND_MILLIS);

    /** This node leads term 3 and has everything committed and applied up to index 10. */
    @BeforeEach
    void lead() {
        raft.leads = true;
        raft.term = 3;
        raft.committed = 10;
        raft.applied = 10;
        registers.put("a", 5L);
    }

    private void ready() {
        reads.roleChanged(3, true);
        turns.run();
        raft.appends.remove(0).complete(SUCCESS);
        turns.run();
        assertEquals(3, reads.readyTerm());
    }

    private CompletableFuture<Reading> read() {
        CompletableFuture<Reading> reading = reads.read("a");
        turns.run();
        return reading;
    }

    private void answer(String member, DLedgerResponseCode code) {
        raft.heartbeats.get(member).remove(0).complete(code);
        turns.run();
    }

    private static DLedgerResponseCode code(CompletableFuture<Reading> reading) {
        return reading.getNow(Reading.of(-1L)).code();
    }

    /** With two of four others on its side a leader of five answers, and with one it does not. */
    @Test
    void quorum() {
        ready();
        CompletableFuture<Reading> reading = read();
        answer("n2", SUCCESS);
        assertFalse(reading.isDone());
        answer("n3", SUCCESS);
        assertEquals(Reading.of(5L), reading.getNow(null));
    }

    /** A register that is not there is read as such. */
    @Test
    void absent() {
        ready();
        CompletableFuture<Reading> reading = reads.read("nothing");
        turns.run();
        answer("n2", SUCCESS);
        answer("n3", SUCCESS);
        assertEquals(Reading.of(null), reading.getNow(null));
    }

    /** Answers that are no consent do not count: unreachable, not yet in the term, another leader, unknown member. */
    @Test
    void noConsent() {
        ready();
        CompletableFuture<Reading> reading = read();
        answer("n2", SUCCESS);
        answer("n3", TERM_NOT_READY);
        answer("n4", NETWORK_ERROR);
        assertFalse(reading.isDone());
        answer("n5", DLedgerResponseCode.INCONSISTENT_LEADER);
        assertEquals(NETWORK_ERROR, code(reading));
    }

    /** One member in a higher term is enough to know that a later leader may exist. */
    @Test
    void expired() {
        ready();
        CompletableFuture<Reading> reading = read();
        answer("n2", EXPIRED_TERM);
        assertEquals(NOT_LEADER, code(reading));
    }

    /** A round without enough answers ends at its limit, and its late answers do not count for the next. */
    @Test
    void roundLimit() {
        ready();
        CompletableFuture<Reading> first = read();
        answer("n2", SUCCESS);
        CompletableFuture<Reading> second = read();
        turns.advance(ROUND_MILLIS);
        assertEquals(NETWORK_ERROR, code(first));
        answer("n3", SUCCESS);
        answer("n4", SUCCESS);
        assertFalse(second.isDone());
    }

    /** Reads that come while a round is under way wait for the next: its heartbeats must be sent after they came. */
    @Test
    void sharedRounds() {
        ready();
        CompletableFuture<Reading> first = read();
        assertEquals(1, raft.heartbeats.get("n2").size());
        CompletableFuture<Reading> second = read();
        CompletableFuture<Reading> third = read();
        assertEquals(1, raft.heartbeats.get("n2").size());
        answer("n2", SUCCESS);
        answer("n3", SUCCESS);
        assertEquals(SUCCESS, code(first));
        assertFalse(second.isDone());
        answer("n2", SUCCESS);
        answer("n3", SUCCESS);
        assertEquals(SUCCESS, code(second));
        assertEquals(SUCCESS, code(third));
    }

    /** No member has more than two heartbeats unanswered, however many rounds there are. */
    @Test
    void boundedHeartbeats() {
        ready();
        for (int i = 0; i < 10; i++) {
            CompletableFuture<Reading> reading = read();
            answer("n2", SUCCESS);
            answer("n3", SUCCESS);
            assertEquals(SUCCESS, code(reading));
        }
        assertEquals(2, raft.heartbeats.get("n4").size());
    }

    /** Followers refuse at once, without asking anyone. */
    @Test
    void follower() {
        raft.leads = false;
        assertEquals(NOT_LEADER, code(read()));
        assertTrue(raft.heartbeats.isEmpty());
    }

    /** A leader that hands its leadership over refuses. */
    @Test
    void transferring() {
        ready();
        raft.transferring = true;
        assertEquals(LEADER_TRANSFERRING, code(read()));
    }

    /** Before this leadership has committed an entry of its own, its commit index may miss what an earlier leader answered. */
    @Test
    void notReady() {
        reads.roleChanged(3, true);
        turns.run();
        assertEquals(TERM_NOT_READY, code(read()));
    }

    /** The proof of readiness is of one leadership: elected again in the same term, the node has to give it again. */
    @Test
    void notReadyAgain() {
        ready();
        reads.roleChanged(3, false);
        reads.roleChanged(3, true);
        turns.run();
        assertEquals(-1, reads.readyTerm());
        assertEquals(TERM_NOT_READY, code(read()));
    }

    /** A proof that comes after the leadership has ended does not count for a later one. */
    @Test
    void lateProof() {
        reads.roleChanged(3, true);
        turns.run();
        reads.roleChanged(3, false);
        reads.roleChanged(3, true);
        turns.run();
        raft.appends.remove(0).complete(SUCCESS);
        turns.run();
        assertEquals(-1, reads.readyTerm());
    }

    /** The first entry is tried again until it is committed, one at a time. */
    @Test
    void proofAgain() {
        reads.roleChanged(3, true);
        turns.run();
        raft.appends.remove(0).complete(WAIT_QUORUM_ACK_TIMEOUT);
        turns.run();
        assertTrue(raft.appends.isEmpty());
        turns.advance(200);
        assertEquals(1, raft.appends.size());
        raft.appends.remove(0).complete(SUCCESS);
        turns.run();
        assertEquals(3, reads.readyTerm());
    }

    /** A leader that loses its leadership during a round answers nothing from it, also if it leads again in a later term. */
    @Test
    void deposedDuringRound() {
        ready();
        CompletableFuture<Reading> reading = read();
        answer("n2", SUCCESS);
        reads.roleChanged(3, false);
        raft.term = 4;
        reads.roleChanged(4, true);
        answer("n3", SUCCESS);
        assertEquals(NOT_LEADER, code(reading));
    }

    /** A term that rose during the round, before anyone was told, fails it. */
    @Test
    void termRose() {
        ready();
        CompletableFuture<Reading> reading = read();
        answer("n2", SUCCESS);
        raft.term = 4;
        answer("n3", SUCCESS);
        assertEquals(NOT_LEADER, code(reading));
    }

    /** The value is read after the commit index of the round's start is applied, not before. */
    @Test
    void waitsForApply() {
        ready();
        raft.committed = 11;
        CompletableFuture<Reading> reading = read();
        raft.committed = 12;
        answer("n2", SUCCESS);
        answer("n3", SUCCESS);
        turns.advance(100);
        assertFalse(reading.isDone());
        registers.put("a", 6L);
        raft.applied = 11;
        turns.advance(1);
        assertEquals(Reading.of(6L), reading.getNow(null));
    }

    /** A state machine that is stuck makes reads time out. */
    @Test
    void applyStuck() {
        ready();
        raft.committed = 11;
        CompletableFuture<Reading> reading = read();
        answer("n2", SUCCESS);
        answer("n3", SUCCESS);
        turns.advance(2000);
        assertEquals(TIMEOUT, code(reading));
    }

    /** A group of one needs nobody's consent. */
    @Test
    void alone() {
        raft.others = List.of();
        ready();
        assertEquals(Reading.of(5L), read().getNow(null));
    }

    /** After the end no read stays without an answer. */
    @Test
    void closed() {
        ready();
        CompletableFuture<Reading> inRound = read();
        CompletableFuture<Reading> waiting = read();
        reads.close();
        turns.run();
        assertEquals(NOT_LEADER, code(inRound));
        assertEquals(NOT_LEADER, code(waiting));
        assertEquals(NOT_LEADER, code(read()));
    }

    /** A library whose every answer is given by the test. */
    private static final class FakeRaft implements Raft {
        boolean leads;
        boolean transferring;
        long term;
        long committed;
        long applied;
        List<String> others = List.of("n2", "n3", "n4", "n5");
        final Map<String, List<CompletableFuture<DLedgerResponseCode>>> heartbeats = new HashMap<>();
        final List<CompletableFuture<DLedgerResponseCode>> appends = new ArrayList<>();

        @Override
        public boolean leads() {
            return leads;
        }

        @Override
        public boolean transferring() {
            return transferring;
        }

        @Override
        public long term() {
            return term;
        }

        @Override
        public long committedIndex() {
            return committed;
        }

        @Override
        public long appliedIndex() {
            return applied;
        }

        @Override
        public Collection<String> others() {
            return others;
        }

        @Override
        public boolean quorum(int members) {
            return members >= (others.size() + 1) / 2 + 1;
        }

        @Override
        public CompletableFuture<DLedgerResponseCode> heartbeat(String member, long inTerm) {
            CompletableFuture<DLedgerResponseCode> answer = new CompletableFuture<>();
            heartbeats.computeIfAbsent(member, id -> new ArrayList<>()).add(answer);
            return answer;
        }

        @Override
        public CompletableFuture<DLedgerResponseCode> appendEmpty() {
            CompletableFuture<DLedgerResponseCode> answer = new CompletableFuture<>();
            appends.add(answer);
            return answer;
        }
    }

    /** Turns in the test's own time. */
    private static final class FakeTurns implements Turns {
        private record Task(long at, long order, Runnable action) {}

        private final PriorityQueue<Task> tasks = new PriorityQueue<>(
            (one, other) -> one.at != other.at ? Long.compare(one.at, other.at) : Long.compare(one.order, other.order));
        private long now;
        private long order;

        @Override
        public void soon(Runnable task) {
            later(0, task);
        }

        @Override
        public void later(long millis, Runnable task) {
            tasks.add(new Task(now + millis, order++, task));
        }

        @Override
        public long nowMillis() {
            return now;
        }

        void run() {
            advance(0);
        }

        void advance(long millis) {
            long until = now + millis;
            while (!tasks.isEmpty() && tasks.peek().at <= until) {
                Task task = tasks.poll();
                now = task.at;
                task.action.run();
            }
            now = until;
        }
    }
}
