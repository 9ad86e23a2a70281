package io.labrys.simjvm.inside.remoting;

import io.labrys.simjvm.run.Mailbox;
import io.labrys.simjvm.run.NetEvent;
import io.labrys.simjvm.run.Sockets;
import io.netty.channel.Channel;
import java.util.HashMap;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.common.Pair;
import org.apache.rocketmq.remoting.ChannelEventListener;
import org.apache.rocketmq.remoting.InvokeCallback;
import org.apache.rocketmq.remoting.RemotingServer;
import org.apache.rocketmq.remoting.exception.RemotingSendRequestException;
import org.apache.rocketmq.remoting.exception.RemotingTimeoutException;
import org.apache.rocketmq.remoting.exception.RemotingTooMuchRequestException;
import org.apache.rocketmq.remoting.netty.NettyRemotingAbstract;
import org.apache.rocketmq.remoting.netty.NettyRequestProcessor;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * RocketMQ's remoting server on simulated connections, in the place of {@code NettyRemotingServer}.
 *
 * <p>Dispatch, executors, answers and time-outs are those of the released {@link NettyRemotingAbstract}. As in RocketMQ 5.1.0, a
 * processor without an executor of its own runs in a pool of four threads, and a timer looks for requests without an answer once
 * a second.
 */
public final class SimRemotingServer extends NettyRemotingAbstract implements RemotingServer {
    private static final int PUBLIC_THREADS = 4;
    private static final long SCAN_AFTER_MILLIS = 3000;
    private static final long SCAN_MILLIS = 1000;

    private final NettyServerConfig config;
    private final ChannelEventListener listener;
    private final ExecutorService publicExecutor;
    private final Timer timer = new Timer("ServerHouseKeepingService", true);
    private final Mailbox mailbox = new Mailbox();
    private final Map<Long, SimChannel> channels = new HashMap<>();

    /** Makes a server; see {@code NettyRemotingServer}. */
    public SimRemotingServer(NettyServerConfig config) {
        this(config, null);
    }

    /** Makes a server; see {@code NettyRemotingServer}. */
    public SimRemotingServer(NettyServerConfig config, ChannelEventListener listener) {
        super(config.getServerOnewaySemaphoreValue(), config.getServerAsyncSemaphoreValue());
        this.config = config;
        this.listener = listener;
        int threads = config.getServerCallbackExecutorThreads() > 0 ? config.getServerCallbackExecutorThreads() : PUBLIC_THREADS;
        AtomicInteger number = new AtomicInteger();
        publicExecutor = Executors.newFixedThreadPool(threads,
            task -> new Thread(task, "NettyServerPublicExecutor_" + number.incrementAndGet()));
    }

    @Override
    public void start() {
        Sockets.listen(config.getListenPort(), mailbox);
        Thread reader = new Thread(this::serve, "NettyServerCodecThread_1");
        reader.setDaemon(true);
        reader.start();
        timer.scheduleAtFixedRate(new TimerTask() {
            @Override
            public void run() {
                scanResponseTable();
            }
        }, SCAN_AFTER_MILLIS, SCAN_MILLIS);
    }

    private void serve() {
        while (true) {
            NetEvent event;
            try {
                event = mailbox.take();
            } catch (InterruptedException e) {
                return;
            }
            SimChannel channel = channels.get(event.connection());
            switch (event.kind()) {
                case ACCEPTED -> channels.put(event.connection(), SimChannel.accepted(event.connection(), event.text()));
                case DATA -> channel.receive(event.data(), this::processMessageReceived);
                case CLOSED -> {
                    channels.remove(event.connection());
                    channel.close();
                    failFast(channel.channel());
                }
                default -> throw new IllegalStateException("a server gets no event " + event.kind());
            }
        }
    }

    @Override
    public void shutdown() {
        throw new UnsupportedOperationException("a simulated process ends by a kill");
    }

    @Override
    public void registerProcessor(int requestCode, NettyRequestProcessor processor, ExecutorService executor) {
        processorTable.put(requestCode, new Pair<>(processor, executor == null ? publicExecutor : executor));
    }

    @Override
    public void registerDefaultProcessor(NettyRequestProcessor processor, ExecutorService executor) {
        defaultRequestProcessorPair = new Pair<>(processor, executor);
    }

    @Override
    public int localListenPort() {
        return config.getListenPort();
    }

    @Override
    public Pair<NettyRequestProcessor, ExecutorService> getProcessorPair(int requestCode) {
        return processorTable.get(requestCode);
    }

    @Override
    public Pair<NettyRequestProcessor, ExecutorService> getDefaultProcessorPair() {
        return defaultRequestProcessorPair;
    }

    @Override
    public RemotingServer newRemotingServer(int port) {
        throw new UnsupportedOperationException("a simulated server has one port");
    }

    @Override
    public void removeRemotingServer(int port) {
        throw new UnsupportedOperationException("a simulated server has one port");
    }

    @Override
    public RemotingCommand invokeSync(Channel channel, RemotingCommand request, long timeoutMillis)
        throws InterruptedException, RemotingSendRequestException, RemotingTimeoutException {
        return invokeSyncImpl(channel, request, timeoutMillis);
    }

    @Override
    public void invokeAsync(Channel channel, RemotingCommand request, long timeoutMillis, InvokeCallback callback)
        throws InterruptedException, RemotingTooMuchRequestException, RemotingTimeoutException, RemotingSendRequestException {
        invokeAsyncImpl(channel, request, timeoutMillis, callback);
    }

    @Override
    public void invokeOneway(Channel channel, RemotingCommand request, long timeoutMillis)
        throws InterruptedException, RemotingTooMuchRequestException, RemotingTimeoutException, RemotingSendRequestException {
        invokeOnewayImpl(channel, request, timeoutMillis);
    }

    @Override
    public ChannelEventListener getChannelEventListener() {
        return listener;
    }

    @Override
    public ExecutorService getCallbackExecutor() {
        return publicExecutor;
    }
}
