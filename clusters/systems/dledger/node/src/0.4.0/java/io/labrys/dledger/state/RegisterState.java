package io.labrys.dledger.state;

import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The replicated map of registers, and the index of the last applied log entry.
 *
 * <p>The state depends on the log's prefix only. An entry takes effect at most once, even if the library delivers it again. A
 * {@link Copy} is the state at exactly its index. One thread applies entries; any thread can read.
 */
public final class RegisterState {
    /** The index before the first entry is applied; log indexes begin at 0. */
    public static final long NOTHING = -1;

    private final Object lock = new Object();
    private volatile Map<String, Long> registers = new ConcurrentHashMap<>();
    private long index = NOTHING;

    /**
     * A copy of the state.
     *
     * @param index the index of the last applied log entry
     * @param registers the registers, ordered by key
     */
    public record Copy(long index, Map<String, Long> registers) {}

    /** Returns the register's value; null if there is none. Never blocks. */
    public Long get(String key) {
        return registers.get(key);
    }

    /** Returns the number of registers. */
    public int size() {
        return registers.size();
    }

    /**
     * Applies the entry at {@code at}.
     *
     * @return the answer, or null if this or a later entry was applied before
     */
    public Answer apply(long at, Command command) {
        synchronized (lock) {
            if (at <= index) {
                return null;
            }
            index = at;
            Long before = registers.get(command.key());
            boolean applies = command.kind() == Command.Kind.PUT || Objects.equals(before, command.expected());
            if (applies) {
                registers.put(command.key(), command.value());
            }
            return new Answer(applies, applies ? Long.valueOf(command.value()) : before, at);
        }
    }

    /** Skips the entry at {@code at}, which changes no register. Returns whether the entry is new. */
    public boolean skip(long at) {
        synchronized (lock) {
            if (at <= index) {
                return false;
            }
            index = at;
            return true;
        }
    }

    /** Returns a copy of the registers, and the index of the last entry that was applied or skipped. */
    public Copy copy() {
        synchronized (lock) {
            return new Copy(index, new TreeMap<>(registers));
        }
    }

    /** Replaces the whole state, for example by a snapshot. */
    public void replace(Copy copy) {
        Map<String, Long> loaded = new ConcurrentHashMap<>(copy.registers());
        synchronized (lock) {
            registers = loaded;
            index = copy.index();
        }
    }
}
