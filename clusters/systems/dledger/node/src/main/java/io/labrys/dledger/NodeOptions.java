package io.labrys.dledger;

import io.openmessaging.storage.dledger.DLedgerConfig;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/**
 * The command line of a node.
 *
 * @param group the Raft group's name
 * @param self this node's id, one of those in {@code peers}
 * @param peers all nodes, {@code id-host:port;id-host:port;...}
 * @param dir the directory of the node's data
 * @param snapshotThreshold entries between snapshots; 0 means none are made, as is the library's default
 * @param heartbeatMs the leader's heartbeat interval; three missed ones start an election
 * @param dataFileBytes the size of one log file
 * @param indexFileEntries how many entries one index file holds
 */
record NodeOptions(
        String group,
        String self,
        String peers,
        String dir,
        int snapshotThreshold,
        int heartbeatMs,
        int dataFileBytes,
        int indexFileEntries) {

    static final String USAGE =
            "usage: dledger-node --group NAME --self ID --peers ID-HOST:PORT;... --dir DIR [--snapshot-threshold N]"
                    + " [--heartbeat-ms N] [--data-file-bytes N] [--index-file-entries N]";

    private static final int INDEX_ENTRY_BYTES = 32;
    private static final Set<String> KNOWN = Set.of(
            "group", "self", "peers", "dir", "snapshot-threshold", "heartbeat-ms", "data-file-bytes", "index-file-entries");

    /**
     * Parses {@code --name value} pairs.
     *
     * @throws IllegalArgumentException an option is unknown, has no value, is missing, or is not a number in its range
     */
    static NodeOptions parse(String[] arguments) {
        Map<String, String> values = new HashMap<>();
        for (int i = 0; i < arguments.length; i += 2) {
            String name = arguments[i].startsWith("--") ? arguments[i].substring(2) : "";
            if (!KNOWN.contains(name)) {
                throw new IllegalArgumentException("unknown option '" + arguments[i] + "'");
            }
            if (i + 1 == arguments.length) {
                throw new IllegalArgumentException("option '" + arguments[i] + "' needs a value");
            }
            values.put(name, arguments[i + 1]);
        }
        NodeOptions options = new NodeOptions(
                required(values, "group"),
                required(values, "self"),
                required(values, "peers"),
                required(values, "dir"),
                number(values, "snapshot-threshold", 0, 0),
                number(values, "heartbeat-ms", 500, 10),
                number(values, "data-file-bytes", 4 << 20, 4096),
                number(values, "index-file-entries", 32768, 64));
        if (!(";" + options.peers).contains(";" + options.self + "-")) {
            throw new IllegalArgumentException("'" + options.self + "' is not among the peers '" + options.peers + "'");
        }
        return options;
    }

    /** Returns the library's configuration for these options. */
    DLedgerConfig toConfig() {
        DLedgerConfig config = new DLedgerConfig();
        config.setGroup(group);
        config.setSelfId(self);
        config.setPeers(peers);
        config.setStoreBaseDir(dir);
        config.setStoreType(DLedgerConfig.FILE);
        config.setMappedFileSizeForEntryData(dataFileBytes);
        config.setMappedFileSizeForEntryIndex(indexFileEntries * INDEX_ENTRY_BYTES);
        config.setHeartBeatTimeIntervalMs(heartbeatMs);
        config.setEnableSnapshot(snapshotThreshold > 0);
        if (snapshotThreshold > 0) {
            config.setSnapshotThreshold(snapshotThreshold);
        }
        return config;
    }

    private static String required(Map<String, String> values, String name) {
        String value = values.get(name);
        if (value == null || value.isEmpty()) {
            throw new IllegalArgumentException("option '--" + name + "' is required");
        }
        return value;
    }

    private static int number(Map<String, String> values, String name, int fallback, int least) {
        String value = values.get(name);
        if (value == null) {
            return fallback;
        }
        try {
            int number = Integer.parseInt(value);
            if (number >= least) {
                return number;
            }
        } catch (NumberFormatException notANumber) {
            // said below, with what was expected
        }
        throw new IllegalArgumentException("option '--" + name + "' takes a number of at least " + least + ", not '" + value + "'");
    }
}
