package io.labrys.simjvm.inside;

/** A thread of a pool with work stealing. There is none. */
public abstract class ForkJoinWorkerThread extends Thread {
    private ForkJoinWorkerThread() {}
}
