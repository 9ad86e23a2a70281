package io.labrys.simjvm.inside.remoting;

import io.labrys.simjvm.run.Mailbox;
import io.labrys.simjvm.run.NetEvent;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.common.Pair;
import org.apache.rocketmq.common.ServiceThread;
import org.apache.rocketmq.remoting.ChannelEventListener;
import org.apache.rocketmq.remoting.netty.NettyEvent;
import org.apache.rocketmq.remoting.netty.NettyEventType;
import org.apache.rocketmq.remoting.netty.NettyRemotingAbstract;
import org.apache.rocketmq.remoting.netty.NettyRequestProcessor;

/**
 * What the two sides of RocketMQ's remoting share on simulated connections.
 *
 * <p>Dispatch, executors, requests, answers and time-outs are those of the released {@link NettyRemotingAbstract}. As in RocketMQ
 * 5.1.0, a processor without an executor of its own runs in a pool of four threads, and a timer looks for requests without an
 * answer once a second.
 */
abstract class SimRemoting extends NettyRemotingAbstract {
    private static final int PUBLIC_THREADS = 4;
    private static final long SCAN_AFTER_MILLIS = 3000;
    private static final long SCAN_MILLIS = 1000;

    final Mailbox mailbox = new Mailbox();
    final ExecutorService publicExecutor;
    private final ChannelEventListener listener;
    private final String reader;
    private final Timer timer;

    /**
     * Makes a side.
     *
     * @param side its name in the names of threads
     * @param reader the name of the thread that takes what arrives
     * @param oneway the most one-way requests at a time
     * @param async the most asynchronous requests at a time
     * @param threads the number of threads of the pool; 0 for the usual number
     * @param listener learns of channels; null for none
     */
    SimRemoting(String side, String reader, int oneway, int async, int threads, ChannelEventListener listener) {
        super(oneway, async);
        this.reader = reader;
        this.listener = listener;
        timer = new Timer(side + "HouseKeepingService", true);
        AtomicInteger number = new AtomicInteger();
        publicExecutor = Executors.newFixedThreadPool(threads > 0 ? threads : PUBLIC_THREADS,
            task -> new Thread(task, "Netty" + side + "PublicExecutor_" + number.incrementAndGet()));
    }

    /** Starts the threads. */
    public void start() {
        Thread thread = new Thread(this::serve, reader);
        thread.setDaemon(true);
        thread.start();
        if (listener != null) {
            ServiceThread events = nettyEventExecutor;
            events.start();
        }
        timer.scheduleAtFixedRate(new TimerTask() {
            @Override
            public void run() {
                scanResponseTable();
            }
        }, SCAN_AFTER_MILLIS, SCAN_MILLIS);
    }

    private void serve() {
        while (true) {
            try {
                handle(mailbox.take());
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    /** Handles an event of a connection. */
    abstract void handle(NetEvent event);

    /** Lets the listener learn of a channel, on the thread of the released code for that. */
    void tell(NettyEventType what, SimChannel channel) {
        if (listener != null) {
            putNettyEvent(new NettyEvent(what, channel.address(), channel.channel()));
        }
    }

    /** Refuses: a simulated process ends by a kill. */
    public void shutdown() {
        throw new UnsupportedOperationException("a simulated process ends by a kill");
    }

    /** Registers what handles requests with a code. */
    public void registerProcessor(int requestCode, NettyRequestProcessor processor, ExecutorService executor) {
        processorTable.put(requestCode, new Pair<>(processor, executor == null ? publicExecutor : executor));
    }

    @Override
    public ChannelEventListener getChannelEventListener() {
        return listener;
    }
}
