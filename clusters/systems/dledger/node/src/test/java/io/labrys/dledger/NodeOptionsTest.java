package io.labrys.dledger;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

class NodeOptionsTest {
    private static final List<String> NEEDED =
        List.of("--group", "g", "--self", "n1", "--peers", "n1-10.0.0.1:2000;n2-h-2:2001", "--dir", "/d", "--log-dir", "/l");

    private static NodeOptions parse(String... more) {
        List<String> arguments = new ArrayList<>(NEEDED);
        arguments.addAll(List.of(more));
        return NodeOptions.parse(arguments.toArray(String[]::new));
    }

    private static void refused(String said, String... more) {
        Exception refusal = assertThrows(IllegalArgumentException.class, () -> parse(more));
        assertTrue(refusal.getMessage().contains(said), refusal.getMessage());
    }

    /** Missing options have the documented defaults; snapshots are off, as in the library. */
    @Test
    void defaults() {
        NodeOptions options = parse();
        assertEquals(OptionalInt.empty(), options.snapshotThreshold());
        assertEquals(0, options.snapshotMillis());
        assertEquals(500, options.heartbeatMillis());
        assertEquals(1000, options.voteMillis());
        assertEquals(4 << 20, options.dataFileBytes());
        assertEquals("10.0.0.1:2000", options.address());
        assertTrue(options.registers());
    }

    /** Given options are used. */
    @Test
    void given() {
        NodeOptions options = parse("--snapshot-threshold", "20", "--snapshot-ms", "300", "--heartbeat-ms", "200", "--vote-ms", "9000",
            "--data-file-bytes", "4096", "--index-file-entries", "64");
        assertEquals(OptionalInt.of(20), options.snapshotThreshold());
        assertEquals(300, options.snapshotMillis());
        assertEquals(200, options.heartbeatMillis());
        assertEquals(9000, options.voteMillis());
        assertEquals(4096, options.dataFileBytes());
        assertEquals(64, options.indexFileEntries());
        assertTrue(parse("--state-machine", "registers").registers());
        assertFalse(parse("--state-machine", "none").registers());
    }

    /** Unknown names, missing values, repetitions and bad values are errors with a reason. */
    @Test
    void refusals() {
        refused("unknown option --port", "--port", "1");
        refused("--heartbeat-ms needs a value", "--heartbeat-ms");
        refused("given twice", "--group", "h");
        refused("expected a whole number, found 'soon'", "--heartbeat-ms", "soon");
        refused("expected at least 1, found 0", "--snapshot-threshold", "0");
        refused("expected registers or none, found 'map'", "--state-machine", "map");
        refused("--snapshot-threshold needs --state-machine registers", "--state-machine", "none",
            "--snapshot-threshold", "5");
        assertThrows(IllegalArgumentException.class, () -> NodeOptions.parse("--group", "g"));
    }

    /** A node that is not among its peers, or has peers without an address, is refused. */
    @Test
    void peers() {
        for (String peers : List.of("n2-h:1", "n1", "n1-h", "n1-h:port", "")) {
            List<String> arguments = new ArrayList<>(NEEDED);
            arguments.set(arguments.indexOf("--peers") + 1, peers);
            assertThrows(IllegalArgumentException.class, () -> NodeOptions.parse(arguments.toArray(String[]::new)), peers);
        }
    }
}
