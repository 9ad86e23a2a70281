package io.labrys.bookkeeper;

/**
 * A value that is made when it is first needed, and made again if that failed, e.g. a client before ZooKeeper serves.
 *
 * @param <T> the type of the value
 */
final class Shared<T> {
    /**
     * Makes the value.
     *
     * @param <T> the type of the value
     */
    interface Maker<T> {
        /** Makes the value. */
        T make() throws Exception;
    }

    private final Maker<T> maker;
    private T value;

    Shared(Maker<T> maker) {
        this.maker = maker;
    }

    /** Returns the value. */
    synchronized T get() throws Exception {
        if (value == null) {
            value = maker.make();
        }
        return value;
    }
}
