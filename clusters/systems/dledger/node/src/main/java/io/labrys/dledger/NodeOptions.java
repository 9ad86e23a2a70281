package io.labrys.dledger;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeSet;

/**
 * The command line of a node. A node ignores no option: an option that it cannot use is an error.
 *
 * @param group the Raft group
 * @param self this node's id
 * @param peers all members, {@code id-host:port} joined by semicolons
 * @param directory the directory of the library's log, term and snapshots
 * @param logDirectory the directory of the node's log files
 * @param snapshotThreshold the number of entries between snapshots; empty: no snapshots, the library's default
 * @param snapshotMillis the least time in which a node saves a snapshot, as one with a large state does
 * @param heartbeatMillis the interval of the leader's heartbeats; a follower starts an election after three intervals
 * @param voteMillis the longest wait of a candidate before its next vote; the shortest is three tenths of it
 * @param dataFileBytes the size of a file of the log
 * @param indexFileEntries the number of entries in a file of the log's index
 * @param registers whether the node has registers; if not, it is the library's plain server
 */
public record NodeOptions(String group, String self, String peers, Path directory, Path logDirectory,
    OptionalInt snapshotThreshold, int snapshotMillis, int heartbeatMillis, int voteMillis, int dataFileBytes,
    int indexFileEntries, boolean registers) {

    private static final String USAGE = "options: --group G --self ID --peers ID-HOST:PORT;... --dir DIR --log-dir DIR"
        + " [--snapshot-threshold N] [--snapshot-ms N] [--heartbeat-ms N] [--vote-ms N] [--data-file-bytes N]"
        + " [--index-file-entries N] [--state-machine registers|none]";
    private static final Set<String> NAMES = new TreeSet<>(Set.of("--group", "--self", "--peers", "--dir", "--log-dir",
        "--snapshot-threshold", "--snapshot-ms", "--heartbeat-ms", "--vote-ms", "--data-file-bytes", "--index-file-entries",
        "--state-machine"));

    /** Checks the options: this node must be one of its peers, and only registers have snapshots. */
    public NodeOptions {
        addressIn(peers, self);
        if (!registers && snapshotThreshold.isPresent()) {
            throw new IllegalArgumentException("--snapshot-threshold needs --state-machine registers: "
                + "the library makes snapshots of a state machine only");
        }
    }

    /**
     * Parses a command line.
     *
     * @throws IllegalArgumentException the command line is wrong; the message is for its author
     */
    public static NodeOptions parse(String... arguments) {
        Map<String, String> given = new HashMap<>();
        for (int i = 0; i < arguments.length; i += 2) {
            if (!NAMES.contains(arguments[i])) {
                throw new IllegalArgumentException("unknown option " + arguments[i] + "; " + USAGE);
            }
            if (i + 1 == arguments.length) {
                throw new IllegalArgumentException(arguments[i] + " needs a value; " + USAGE);
            }
            if (given.put(arguments[i], arguments[i + 1]) != null) {
                throw new IllegalArgumentException(arguments[i] + " is given twice");
            }
        }
        String threshold = given.get("--snapshot-threshold");
        return new NodeOptions(
            required(given, "--group"),
            required(given, "--self"),
            required(given, "--peers"),
            Path.of(required(given, "--dir")),
            Path.of(required(given, "--log-dir")),
            threshold == null ? OptionalInt.empty() : OptionalInt.of(number(given, "--snapshot-threshold", 0, 1)),
            number(given, "--snapshot-ms", 0, 0),
            number(given, "--heartbeat-ms", 500, 10),
            number(given, "--vote-ms", 1000, 10),
            number(given, "--data-file-bytes", 4 << 20, 4096),
            number(given, "--index-file-entries", 32_768, 16),
            hasRegisters(given.getOrDefault("--state-machine", "registers")));
    }

    /** Returns {@code host:port} of this node. */
    public String address() {
        return addressIn(peers, self);
    }

    private static String addressIn(String peers, String self) {
        for (String peer : peers.split(";")) {
            String[] parts = peer.split("-", 2);
            if (parts.length != 2 || !parts[1].matches(".+:\\d{1,5}")) {
                throw new IllegalArgumentException("--peers: expected ID-HOST:PORT, found '" + peer + "'");
            }
            if (parts[0].equals(self)) {
                return parts[1];
            }
        }
        throw new IllegalArgumentException("--self " + self + " is not among --peers " + peers);
    }

    private static boolean hasRegisters(String machine) {
        return switch (machine) {
            case "registers" -> true;
            case "none" -> false;
            default -> throw new IllegalArgumentException(
                "--state-machine: expected registers or none, found '" + machine + "'");
        };
    }

    private static String required(Map<String, String> given, String name) {
        String value = given.get(name);
        if (value == null || value.isEmpty()) {
            throw new IllegalArgumentException(name + " is missing; " + USAGE);
        }
        return value;
    }

    private static int number(Map<String, String> given, String name, int byDefault, int minimum) {
        String text = given.get(name);
        if (text == null) {
            return byDefault;
        }
        int value;
        try {
            value = Integer.parseInt(text);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(name + ": expected a whole number, found '" + text + "'", e);
        }
        if (value < minimum) {
            throw new IllegalArgumentException(name + ": expected at least " + minimum + ", found " + value);
        }
        return value;
    }
}
