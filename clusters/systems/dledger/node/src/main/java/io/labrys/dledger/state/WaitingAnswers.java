package io.labrys.dledger.state;

import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/**
 * Keeps the answers to the writes that someone in this process waits for.
 *
 * <p>Why: the library registers a write's closure after it has appended the entry. If the entry is applied in between, the
 * closure is later told "ok" without an answer. The law here: between {@code expect} and {@code take}, an answer given by the
 * state machine is never lost; and nothing is kept for writes that nobody waits for.
 */
public final class WaitingAnswers {
    private final ConcurrentMap<OpId, Optional<Answer>> answers = new ConcurrentHashMap<>();

    /** Announces that someone waits for the answer; called before the write is handed to the library. */
    public void expect(OpId id) {
        answers.put(id, Optional.empty());
    }

    /** Keeps the answer if someone waits for it. */
    public void give(OpId id, Answer answer) {
        answers.computeIfPresent(id, (key, before) -> Optional.of(answer));
    }

    /** Ends the waiting; returns the answer, or null if there is none. */
    public Answer take(OpId id) {
        Optional<Answer> answer = answers.remove(id);
        return answer == null ? null : answer.orElse(null);
    }

    /** Returns how many are waited for. */
    public int size() {
        return answers.size();
    }
}
