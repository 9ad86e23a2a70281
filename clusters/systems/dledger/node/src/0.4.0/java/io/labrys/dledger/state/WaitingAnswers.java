package io.labrys.dledger.state;

import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/**
 * Keeps the answers to the pending writes of this process.
 *
 * <p>The library registers a write's closure after it appends the entry. If it applies the entry in between, it later completes
 * the closure without an answer. This class keeps every answer that the state machine gives between {@code expect} and
 * {@code take}. It drops the answers to other writes.
 */
public final class WaitingAnswers {
    private final ConcurrentMap<OpId, Optional<Answer>> answers = new ConcurrentHashMap<>();

    /** Begins to wait for an answer. The caller does this before it gives the write to the library. */
    public void expect(OpId id) {
        answers.put(id, Optional.empty());
    }

    /** Keeps the answer if the write is pending. */
    public void give(OpId id, Answer answer) {
        answers.computeIfPresent(id, (key, before) -> Optional.of(answer));
    }

    /** Ends the wait. Returns the answer, or null if there is none. */
    public Answer take(OpId id) {
        Optional<Answer> answer = answers.remove(id);
        return answer == null ? null : answer.orElse(null);
    }

    /** Returns the number of pending writes. */
    public int size() {
        return answers.size();
    }
}
