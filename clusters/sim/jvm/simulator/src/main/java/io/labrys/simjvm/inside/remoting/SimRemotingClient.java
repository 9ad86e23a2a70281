package io.labrys.simjvm.inside.remoting;

import io.labrys.simjvm.run.Mailbox;
import io.labrys.simjvm.run.NetEvent;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.rocketmq.common.Pair;
import org.apache.rocketmq.remoting.ChannelEventListener;
import org.apache.rocketmq.remoting.InvokeCallback;
import org.apache.rocketmq.remoting.RemotingClient;
import org.apache.rocketmq.remoting.exception.RemotingConnectException;
import org.apache.rocketmq.remoting.exception.RemotingSendRequestException;
import org.apache.rocketmq.remoting.exception.RemotingTimeoutException;
import org.apache.rocketmq.remoting.exception.RemotingTooMuchRequestException;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyRemotingAbstract;
import org.apache.rocketmq.remoting.netty.NettyRequestProcessor;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * RocketMQ's remoting client on simulated connections, in the place of {@code NettyRemotingClient}.
 *
 * <p>Requests, answers, callbacks and time-outs are those of the released {@link NettyRemotingAbstract}. This class keeps one channel
 * for each address. As in RocketMQ 5.1.0, all requests to an address wait for its channel for {@code connectTimeoutMillis}; a
 * request without a channel fails with {@link RemotingConnectException}; the end of a channel fails its requests at once; and a
 * timer looks for requests without an answer once a second. It has no name servers and no proxies.
 */
public final class SimRemotingClient extends NettyRemotingAbstract implements RemotingClient {
    private static final int PUBLIC_THREADS = 4;
    private static final long LOCK_MILLIS = 3000;
    private static final long SCAN_AFTER_MILLIS = 3000;
    private static final long SCAN_MILLIS = 1000;

    private final NettyClientConfig config;
    private final ChannelEventListener listener;
    private final ExecutorService publicExecutor;
    private final Timer timer = new Timer("ClientHouseKeepingService", true);
    private final Mailbox mailbox = new Mailbox();
    private final Lock lock = new ReentrantLock();
    private final Map<String, SimChannel> byAddress = new ConcurrentHashMap<>();
    private final Map<Long, SimChannel> byConnection = new HashMap<>();
    private ExecutorService callbackExecutor;

    /** Makes a client; see {@code NettyRemotingClient}. */
    public SimRemotingClient(NettyClientConfig config) {
        this(config, null);
    }

    /** Makes a client; see {@code NettyRemotingClient}. */
    public SimRemotingClient(NettyClientConfig config, ChannelEventListener listener) {
        super(config.getClientOnewaySemaphoreValue(), config.getClientAsyncSemaphoreValue());
        this.config = config;
        this.listener = listener;
        int threads = config.getClientCallbackExecutorThreads() > 0 ? config.getClientCallbackExecutorThreads() : PUBLIC_THREADS;
        AtomicInteger number = new AtomicInteger();
        publicExecutor = Executors.newFixedThreadPool(threads,
            task -> new Thread(task, "NettyClientPublicExecutor_" + number.incrementAndGet()));
    }

    @Override
    public void start() {
        Thread reader = new Thread(this::serve, "NettyClientWorkerThread_1");
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
            SimChannel channel = byConnection.get(event.connection());
            if (channel == null) {
                continue; // this side has closed it
            }
            switch (event.kind()) {
                case OPENED -> channel.opened().complete(true);
                case DATA -> channel.receive(event.data(), this::processMessageReceived);
                case CLOSED -> channel.close();
                default -> throw new IllegalStateException("a client gets no event " + event.kind());
            }
        }
    }

    @Override
    public void shutdown() {
        throw new UnsupportedOperationException("a simulated process ends by a kill");
    }

    @Override
    public RemotingCommand invokeSync(String address, RemotingCommand request, long timeoutMillis)
        throws InterruptedException, RemotingConnectException, RemotingSendRequestException, RemotingTimeoutException {
        long began = System.currentTimeMillis();
        SimChannel channel = connected(address);
        doBeforeRpcHooks(address, request);
        long left = timeoutMillis - (System.currentTimeMillis() - began);
        if (left < 0) {
            throw new RemotingTimeoutException("invokeSync call the addr[" + address + "] timeout");
        }
        try {
            RemotingCommand response = invokeSyncImpl(channel.channel(), request, left);
            doAfterRpcHooks(address, request, response);
            return response;
        } catch (RemotingSendRequestException e) {
            channel.close();
            throw e;
        } catch (RemotingTimeoutException e) {
            if (config.isClientCloseSocketIfTimeout()) {
                channel.close();
            }
            throw e;
        }
    }

    @Override
    public void invokeAsync(String address, RemotingCommand request, long timeoutMillis, InvokeCallback callback)
        throws InterruptedException, RemotingConnectException, RemotingTooMuchRequestException, RemotingTimeoutException,
        RemotingSendRequestException {
        long began = System.currentTimeMillis();
        SimChannel channel = connected(address);
        doBeforeRpcHooks(address, request);
        long left = timeoutMillis - (System.currentTimeMillis() - began);
        if (left < 0) {
            throw new RemotingTooMuchRequestException("invokeAsync call the addr[" + address + "] timeout");
        }
        try {
            invokeAsyncImpl(channel.channel(), request, left, callback);
        } catch (RemotingSendRequestException e) {
            channel.close();
            throw e;
        }
    }

    @Override
    public void invokeOneway(String address, RemotingCommand request, long timeoutMillis) throws InterruptedException,
        RemotingConnectException, RemotingTooMuchRequestException, RemotingTimeoutException, RemotingSendRequestException {
        SimChannel channel = connected(address);
        doBeforeRpcHooks(address, request);
        try {
            invokeOnewayImpl(channel.channel(), request, timeoutMillis);
        } catch (RemotingSendRequestException e) {
            channel.close();
            throw e;
        }
    }

    /** Returns an open channel to an address. Begins one if there is none, and waits for it. */
    private SimChannel connected(String address) throws InterruptedException, RemotingConnectException {
        SimChannel channel = byAddress.get(address);
        if (channel == null || !channel.isActive()) {
            channel = begun(address);
        }
        if (channel != null && waitUntilOpen(channel)) {
            return channel;
        }
        if (channel != null && channel.isDone()) {
            channel.close();
        }
        throw new RemotingConnectException(address);
    }

    private SimChannel begun(String address) throws InterruptedException {
        if (!lock.tryLock(LOCK_MILLIS, TimeUnit.MILLISECONDS)) {
            return byAddress.get(address);
        }
        try {
            SimChannel channel = byAddress.get(address);
            if (channel != null && (channel.isActive() || !channel.isDone())) {
                return channel;
            }
            channel = SimChannel.connect(address, mailbox, this::ended);
            byAddress.put(address, channel);
            byConnection.put(channel.connection(), channel);
            return channel;
        } finally {
            lock.unlock();
        }
    }

    private boolean waitUntilOpen(SimChannel channel) throws InterruptedException {
        try {
            return channel.opened().get(config.getConnectTimeoutMillis(), TimeUnit.MILLISECONDS) && channel.isActive();
        } catch (TimeoutException | ExecutionException e) {
            return false;
        }
    }

    private void ended(SimChannel channel) {
        byConnection.remove(channel.connection());
        byAddress.values().remove(channel);
        failFast(channel.channel());
    }

    @Override
    public void registerProcessor(int requestCode, NettyRequestProcessor processor, ExecutorService executor) {
        processorTable.put(requestCode, new Pair<>(processor, executor == null ? publicExecutor : executor));
    }

    @Override
    public void setCallbackExecutor(ExecutorService executor) {
        callbackExecutor = executor;
    }

    @Override
    public ExecutorService getCallbackExecutor() {
        return callbackExecutor == null ? publicExecutor : callbackExecutor;
    }

    @Override
    public ChannelEventListener getChannelEventListener() {
        return listener;
    }

    @Override
    public boolean isChannelWritable(String address) {
        SimChannel channel = byAddress.get(address);
        return channel == null || channel.isActive();
    }

    @Override
    public boolean isAddressReachable(String address) {
        throw new UnsupportedOperationException("a simulated client has no name servers");
    }

    @Override
    public void closeChannels(List<String> addresses) {
        addresses.stream().map(byAddress::get).filter(channel -> channel != null).forEach(SimChannel::close);
    }

    @Override
    public void updateNameServerAddressList(List<String> addresses) {
        throw new UnsupportedOperationException("a simulated client has no name servers");
    }

    @Override
    public List<String> getNameServerAddressList() {
        throw new UnsupportedOperationException("a simulated client has no name servers");
    }

    @Override
    public List<String> getAvailableNameSrvList() {
        throw new UnsupportedOperationException("a simulated client has no name servers");
    }
}
