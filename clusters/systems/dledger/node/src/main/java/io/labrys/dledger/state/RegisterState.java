package io.labrys.dledger.state;

import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The replicated map of registers, and the log index it stands at.
 *
 * <p>The laws: the state is a function of the log's prefix alone; an entry takes effect at most once, however often the
 * library delivers it; a {@link Copy} is the state at exactly its index. One thread applies; any thread may read.
 */
public final class RegisterState {
    /** Stands for "nothing applied yet"; log indexes begin at 0. */
    public static final long NOTHING = -1;

    private final Object lock = new Object();
    private volatile Map<String, Long> registers = new ConcurrentHashMap<>();
    private long index = NOTHING;

    /**
     * The state at one moment.
     *
     * @param index the last log index that is contained
     * @param registers a copy, ordered by key
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

    /** Notes that the entry at {@code at} changes nothing; says whether it is new. */
    public boolean skip(long at) {
        synchronized (lock) {
            if (at <= index) {
                return false;
            }
            index = at;
            return true;
        }
    }

    /** Returns a copy of the registers and the index of the last entry that was given to {@code apply} or {@code skip}. */
    public Copy copy() {
        synchronized (lock) {
            return new Copy(index, new TreeMap<>(registers));
        }
    }

    /** Replaces everything, as by a snapshot. */
    public void replace(Copy copy) {
        Map<String, Long> loaded = new ConcurrentHashMap<>(copy.registers());
        synchronized (lock) {
            registers = loaded;
            index = copy.index();
        }
    }
}
