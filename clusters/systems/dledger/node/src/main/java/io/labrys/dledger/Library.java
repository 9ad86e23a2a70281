package io.labrys.dledger;

import io.openmessaging.storage.dledger.DLedgerConfig;
import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.MemberState;
import io.openmessaging.storage.dledger.store.file.DLedgerMmapFileStore;
import java.util.Locale;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;

/** Makes the library's server from the options. Only this class and {@code RegisterNode} know the library's configuration. */
final class Library {
    private Library() {}

    /** Returns a server that has not started yet. It opens its files and its port when it starts. */
    static DLedgerServer server(NodeOptions options) {
        return server(options, config(options));
    }

    /** Returns such a server with another configuration. */
    static DLedgerServer server(NodeOptions options, DLedgerConfig config) {
        NettyServerConfig listen = new NettyServerConfig();
        listen.setBindAddress(options.address().substring(0, options.address().lastIndexOf(':')));
        return new DLedgerServer(config, listen);
    }

    /** Returns the state of a server as JSON; see {@link Node#state}. */
    static String state(DLedgerServer server, Long value) {
        MemberState member = server.getMemberState();
        return "{\"role\":\"" + member.getRole().name().toLowerCase(Locale.ROOT) + "\",\"term\":" + member.currTerm() + ",\"last\":"
            + member.getLedgerEndIndex() + ",\"lastTerm\":" + member.getLedgerEndTerm() + ",\"committed\":"
            + Version.committed(server) + ",\"value\":" + value + "}";
    }

    /** Returns the configuration of a server without snapshots. */
    static DLedgerConfig config(NodeOptions options) {
        DLedgerConfig config = new DLedgerConfig();
        config.setGroup(options.group());
        config.setSelfId(options.self());
        config.setPeers(options.peers());
        config.setStoreBaseDir(options.directory().toString());
        config.setStoreType(DLedgerConfig.FILE);
        config.setHeartBeatTimeIntervalMs(options.heartbeatMillis());
        config.setMinVoteIntervalMs(options.voteMillis() * 3 / 10);
        config.setMaxVoteIntervalMs(options.voteMillis());
        config.setMappedFileSizeForEntryData(options.dataFileBytes());
        config.setMappedFileSizeForEntryIndex(options.indexFileEntries() * DLedgerMmapFileStore.INDEX_UNIT_SIZE);
        return config;
    }
}
