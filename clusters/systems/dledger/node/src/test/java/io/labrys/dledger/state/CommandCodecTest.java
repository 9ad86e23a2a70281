package io.labrys.dledger.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class CommandCodecTest {
    private static final OpId ID = new OpId(-3, 7);

    private static final List<Command> COMMANDS = List.of(
        new Command(ID, Command.Kind.PUT, "k", 0, null),
        new Command(ID, Command.Kind.PUT, "ключ-\uD83D\uDC02", Long.MIN_VALUE, null),
        new Command(ID, Command.Kind.CAS, "k", Long.MAX_VALUE, null),
        new Command(ID, Command.Kind.CAS, "k", 5, 0L),
        new Command(ID, Command.Kind.CAS, "x".repeat(CommandCodec.MAX_KEY_BYTES), -1, Long.MIN_VALUE));

    /** A command survives the log unchanged. */
    @Test
    void roundTrip() {
        for (Command command : COMMANDS) {
            assertEquals(command, CommandCodec.decode(CommandCodec.encode(command)));
        }
    }

    /** An entry that ends early at any byte is refused. */
    @Test
    void truncated() {
        byte[] whole = CommandCodec.encode(COMMANDS.get(3));
        for (int length = 0; length < whole.length; length++) {
            byte[] part = Arrays.copyOf(whole, length);
            assertThrows(IllegalArgumentException.class, () -> CommandCodec.decode(part), "length " + length);
        }
    }

    /** An entry with bytes after the command is refused. */
    @Test
    void trailing() {
        byte[] longer = Arrays.copyOf(CommandCodec.encode(COMMANDS.get(0)), 200);
        assertThrows(IllegalArgumentException.class, () -> CommandCodec.decode(longer));
    }

    /** An entry with another magic, version or kind is refused, with the difference in the message. */
    @Test
    void foreign() {
        String[] said = {"magic", "version", "kind"};
        for (int at = 0; at < said.length; at++) {
            byte[] foreign = CommandCodec.encode(COMMANDS.get(0));
            foreign[at] = 99;
            Exception refusal = assertThrows(IllegalArgumentException.class, () -> CommandCodec.decode(foreign));
            assertTrue(refusal.getMessage().contains(said[at]), refusal.getMessage());
        }
    }

    /** A key that is empty or too long is refused. */
    @Test
    void badKeys() {
        for (String key : List.of("", "x".repeat(CommandCodec.MAX_KEY_BYTES + 1), "é".repeat(600))) {
            Command command = new Command(ID, Command.Kind.PUT, key, 1, null);
            assertThrows(IllegalArgumentException.class, () -> CommandCodec.encode(command));
        }
    }
}
