package io.labrys.dledger.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.Test;

class WaitingAnswersTest {
    private final WaitingAnswers waiting = new WaitingAnswers();
    private final OpId id = new OpId(1, 1);
    private final Answer answer = new Answer(true, 5L, 3);

    /** An answer to a pending write is kept until it is taken, once. */
    @Test
    void kept() {
        waiting.expect(id);
        waiting.give(id, answer);
        assertEquals(answer, waiting.take(id));
        assertNull(waiting.take(id));
    }

    /** Other answers are dropped: those to writes of other nodes, and late ones. */
    @Test
    void notKept() {
        waiting.give(id, answer);
        assertEquals(0, waiting.size());
        waiting.expect(id);
        assertNull(waiting.take(id));
        waiting.give(id, answer);
        assertEquals(0, waiting.size());
    }

    /** Two writes never have the same id, neither in one process nor in two. */
    @Test
    void names() {
        OpId.Source one = new OpId.Source();
        OpId first = one.next();
        assertNotEquals(first, one.next());
        assertNotEquals(first, new OpId.Source().next());
    }
}
