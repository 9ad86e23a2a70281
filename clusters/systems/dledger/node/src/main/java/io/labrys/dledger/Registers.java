package io.labrys.dledger;

import java.util.HashMap;
import java.util.Map;

/**
 * The registers: key to value, and nothing about Raft.
 *
 * <p>Deterministic: the same commands in the same order give the same values and the same results on every replica. Every
 * method is atomic, since reads come from other threads than the one that applies.
 */
final class Registers {
    private final Map<String, Long> values = new HashMap<>();

    /**
     * The state machine's answer to a command.
     *
     * @param applied whether the register changed hands: always for put, on a match for cas
     * @param value what the register holds afterwards; null if it holds nothing
     */
    record Result(boolean applied, Long value) {}

    synchronized Result apply(Command command) {
        Long current = values.get(command.key());
        boolean matches = switch (command.kind()) {
            case PUT -> true;
            case CAS -> current != null && current == command.expected();
        };
        if (!matches) {
            return new Result(false, current);
        }
        values.put(command.key(), command.value());
        return new Result(true, command.value());
    }

    synchronized Long get(String key) {
        return values.get(key);
    }

    synchronized Map<String, Long> copy() {
        return new HashMap<>(values);
    }

    synchronized void replace(Map<String, Long> others) {
        values.clear();
        values.putAll(others);
    }

    synchronized int size() {
        return values.size();
    }
}
