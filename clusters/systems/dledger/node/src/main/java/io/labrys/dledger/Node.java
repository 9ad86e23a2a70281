package io.labrys.dledger;

/** One member of the group. */
public interface Node extends AutoCloseable {
    /** Recovers from disk, listens, and joins the group. */
    void start();

    /**
     * Returns the state of the node as JSON: {@code role}, {@code term}, {@code last} and {@code lastTerm} of its log, {@code committed},
     * and {@code value} of a key, if the node has a value for it. It reads fields only, and takes no lock.
     */
    String state(String key);

    /** Leaves the group and ends all threads. The library's threads need some seconds. */
    @Override
    void close();
}
