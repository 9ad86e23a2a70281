package io.labrys.bookkeeper;

import java.nio.charset.StandardCharsets;
import org.apache.bookkeeper.zookeeper.ZooKeeperClient;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** Texts in ZooKeeper that change by compare-and-set, e.g. the list of the ledgers of a log. */
final class Lists {
    /** The version of a text that does not exist yet. */
    static final int ABSENT = -1;

    /**
     * A text and its version.
     *
     * @param version the number of its changes; {@link #ABSENT} if there is none
     * @param text the text; empty if there is none
     */
    record Entry(int version, String text) {}

    private static final String ROOT = "/labrys";

    private final Shared<ZooKeeper> zooKeeper;

    Lists(String addresses, int timeoutMillis) {
        zooKeeper = new Shared<>(() -> {
            ZooKeeper made =
                    ZooKeeperClient.newBuilder().connectString(addresses).sessionTimeoutMs(timeoutMillis).build();
            try {
                made.create(ROOT, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            } catch (KeeperException.NodeExistsException ignored) {
                // Another client was first.
            }
            return made;
        });
    }

    /** Returns the text of a name, as the leader of ZooKeeper has it. */
    Entry get(String name) throws Exception {
        String path = path(name);
        ZooKeeper client = zooKeeper.get();
        client.sync(ROOT, (code, synced, context) -> {}, null); // requests of a session keep their order
        try {
            Stat stat = new Stat();
            byte[] found = client.getData(path, false, stat);
            return new Entry(stat.getVersion(), new String(found, StandardCharsets.UTF_8));
        } catch (KeeperException.NoNodeException none) {
            return new Entry(ABSENT, "");
        }
    }

    /** Returns the new version of a text after a change; {@link #ABSENT} if it no longer had the old one. */
    int put(String name, int version, String text) throws Exception {
        byte[] content = text.getBytes(StandardCharsets.UTF_8);
        try {
            if (version == ABSENT) {
                zooKeeper.get().create(path(name), content, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
                return 0;
            }
            return zooKeeper.get().setData(path(name), content, version).getVersion();
        } catch (KeeperException.NodeExistsException | KeeperException.BadVersionException other) {
            return ABSENT;
        }
    }

    private static String path(String name) {
        if (name.isEmpty() || name.contains("/")) {
            throw new IllegalArgumentException("expected a name without slashes, found '" + name + "'");
        }
        return ROOT + "/" + name;
    }
}
