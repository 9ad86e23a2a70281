package io.labrys.dledger.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;

class RegisterStateTest {
    private final RegisterState state = new RegisterState();
    private long ops;

    private Command put(String key, long value) {
        return new Command(new OpId(1, ops++), Command.Kind.PUT, key, value, null);
    }

    private Command cas(String key, Long expected, long value) {
        return new Command(new OpId(1, ops++), Command.Kind.CAS, key, value, expected);
    }

    /** A put always takes effect and returns its value. */
    @Test
    void putApplies() {
        assertEquals(new Answer(true, 5L, 0), state.apply(0, put("a", 5)));
        assertEquals(new Answer(true, 6L, 1), state.apply(1, put("a", 6)));
        assertEquals(6L, state.get("a"));
    }

    /** A cas takes effect if and only if the register has the expected value; a refused one returns the current value. */
    @Test
    void casCompares() {
        state.apply(0, put("a", 5));
        assertEquals(new Answer(false, 5L, 1), state.apply(1, cas("a", 4L, 9)));
        assertEquals(new Answer(true, 9L, 2), state.apply(2, cas("a", 5L, 9)));
        assertEquals(new Answer(false, null, 3), state.apply(3, cas("b", 0L, 1)));
        assertNull(state.get("b"));
    }

    /** A cas that expects nothing creates a register, once. */
    @Test
    void casCreates() {
        assertEquals(new Answer(true, 1L, 0), state.apply(0, cas("a", null, 1)));
        assertEquals(new Answer(false, 1L, 1), state.apply(1, cas("a", null, 2)));
    }

    /** A repeated entry has no effect and no answer. */
    @Test
    void deliveredAgain() {
        Command swap = cas("a", null, 1);
        state.apply(0, swap);
        state.apply(1, put("a", 2));
        assertNull(state.apply(0, swap));
        assertNull(state.apply(1, put("a", 3)));
        assertFalse(state.skip(1));
        assertEquals(2L, state.get("a"));
        assertTrue(state.skip(2));
    }

    /** A copy is the state at its index and does not change afterwards. */
    @Test
    void copyStandsStill() {
        assertEquals(new RegisterState.Copy(RegisterState.NOTHING, Map.of()), state.copy());
        state.apply(3, put("a", 1));
        RegisterState.Copy copy = state.copy();
        state.apply(4, put("a", 2));
        assertEquals(new RegisterState.Copy(3, Map.of("a", 1L)), copy);
    }

    /** A loaded snapshot replaces everything, and entries up to its index are old. */
    @Test
    void replaceWins() {
        state.apply(0, put("gone", 1));
        state.replace(new RegisterState.Copy(10, Map.of("a", 7L)));
        assertNull(state.get("gone"));
        assertNull(state.apply(10, put("a", 8)));
        assertEquals(7L, state.get("a"));
        assertEquals(1, state.size());
    }
}
