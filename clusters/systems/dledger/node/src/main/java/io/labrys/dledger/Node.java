package io.labrys.dledger;

/** One member of the group. */
public interface Node extends AutoCloseable {
    /** Recovers from disk, listens, and joins the group. */
    void start();

    /** Leaves the group and ends all threads. The library's threads need some seconds. */
    @Override
    void close();
}
