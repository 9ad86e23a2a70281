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

    /** This node leads term 3, and has committed and applied entries up to index 10. */
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

    /** A leader of five answers with two confirmations, and does not with one. */
    @Test
    void quorum() {
        ready();
        CompletableFuture<Reading> reading = read();
        answer("n2", SUCCESS);
        assertFalse(reading.isDone());
        answer("n3", SUCCESS);
        assertEquals(Reading.of(5L), reading.getNow(null));
    }

    /** An absent register is read as absent. */
    @Test
    void absent() {
        ready();
        CompletableFuture<Reading> reading = reads.read("nothing");
        turns.run();
        answer("n2", SUCCESS);
        answer("n3", SUCCESS);
        assertEquals(Reading.of(null), reading.getNow(null));
    }

    /** Other answers are not confirmations: unreachable, not yet in the term, another leader, unknown member. */
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

    /** One member in a higher term shows that a later leader may exist. */
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

    /** Reads during a round wait for the next one, whose heartbeats are sent after them. */
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

    /** No member has more than two unanswered heartbeats, for any number of rounds. */
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

    /** Followers refuse at once, without a message. */
    @Test
    void follower() {
        raft.leads = false;
        assertEquals(NOT_LEADER, code(read()));
        assertTrue(raft.heartbeats.isEmpty());
    }

    /** A leader refuses during a transfer. */
    @Test
    void transferring() {
        ready();
        raft.transferring = true;
        assertEquals(LEADER_TRANSFERRING, code(read()));
    }

    /** Before it commits an entry of its own, a leader refuses, since its commit index may lack answered writes. */
    @Test
    void notReady() {
        reads.roleChanged(3, true);
        turns.run();
        assertEquals(TERM_NOT_READY, code(read()));
    }

    /** Readiness belongs to one leadership: after another election in the same term, the node must prove it again. */
    @Test
    void notReadyAgain() {
        ready();
        reads.roleChanged(3, false);
        reads.roleChanged(3, true);
        turns.run();
        assertEquals(-1, reads.readyTerm());
        assertEquals(TERM_NOT_READY, code(read()));
    }

    /** A proof after the end of its leadership does not count for a later one. */
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

    /** The node retries the first entry until it is committed, one at a time. */
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

    /** A leader that is deposed during a round fails its reads, even if it leads again in a later term. */
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

    /** A higher term during the round fails it, even before the role changes. */
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

    /** Reads time out if the state machine is stuck. */
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

    /** A group of one needs no confirmation. */
    @Test
    void alone() {
        raft.others = List.of();
        ready();
        assertEquals(Reading.of(5L), read().getNow(null));
    }

    /** After the close, every read has an answer. */
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

    /** A library whose answers the test gives. */
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

    /** Turns in virtual time. */
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
