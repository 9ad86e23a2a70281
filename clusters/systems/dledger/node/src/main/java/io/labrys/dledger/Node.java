package io.labrys.dledger;

/** One member of the group. */
public interface Node extends AutoCloseable {
    /** Recovers from disk, listens, and takes part in the group from then on. */
    void start();

    /** Leaves the group and ends all threads; takes some seconds, since the library's threads do. */
    @Override
    void close();
}
