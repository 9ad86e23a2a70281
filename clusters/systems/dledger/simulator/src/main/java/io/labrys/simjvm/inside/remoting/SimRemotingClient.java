package io.labrys.simjvm.inside.remoting;

import io.labrys.simjvm.run.NetEvent;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.rocketmq.remoting.ChannelEventListener;
import org.apache.rocketmq.remoting.InvokeCallback;
import org.apache.rocketmq.remoting.RemotingClient;
import org.apache.rocketmq.remoting.exception.RemotingConnectException;
import org.apache.rocketmq.remoting.exception.RemotingException;
import org.apache.rocketmq.remoting.exception.RemotingSendRequestException;
import org.apache.rocketmq.remoting.exception.RemotingTimeoutException;
import org.apache.rocketmq.remoting.exception.RemotingTooMuchRequestException;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * RocketMQ's remoting client on simulated connections, in the place of {@code NettyRemotingClient}.
 *
 * <p>This class keeps one channel for each address. As in RocketMQ 5.1.0, all requests to an address wait for its channel for
 * {@code connectTimeoutMillis}; a request without a channel fails with {@link RemotingConnectException}; and the end of a channel
 * fails its requests at once. In releases whose {@code NettyRemotingClient} has a method {@code getAndCreateChannelAsync}, e.g. 5.3.3,
 * requests that want no answer at once wait in the channel, and no thread waits for them. It has no name servers and no proxies.
 */
public final class SimRemotingClient extends SimRemoting implements RemotingClient {
    private static final long LOCK_MILLIS = 3000;
    private static final Logger LOG = Logger.getLogger(SimRemotingClient.class.getName());
    /** Whether the thread that sends a request waits for a channel. */
    private static final boolean WAITS = waits();

    private final NettyClientConfig config;
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
        super("Client", "NettyClientWorkerThread_1", config.getClientOnewaySemaphoreValue(),
            config.getClientAsyncSemaphoreValue(), config.getClientCallbackExecutorThreads(), listener);
        this.config = config;
    }

    private static boolean waits() {
        String released = "org/apache/rocketmq/remoting/netty/NettyRemotingClient.class";
        try (InputStream in = SimRemotingClient.class.getClassLoader().getResourceAsStream(released)) {
            return !new String(in.readAllBytes(), StandardCharsets.ISO_8859_1).contains("getAndCreateChannelAsync");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    void handle(NetEvent event) {
        SimChannel channel = byConnection.get(event.connection());
        if (channel == null) {
            return; // this side has closed it
        }
        switch (event.kind()) {
            case OPENED -> channel.opened().complete(true);
            case DATA -> channel.receive(event.data(), this::processMessageReceived);
            case CLOSED -> channel.close();
            default -> throw new IllegalStateException("a client gets no event " + event.kind());
        }
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
        if (!WAITS) {
            whenOpen(address, channel -> {
                long left = timeoutMillis - (System.currentTimeMillis() - began);
                if (channel == null) {
                    callback.operationFail(new RemotingConnectException(address));
                } else if (left < 0) {
                    callback.operationFail(new RemotingTooMuchRequestException("invokeAsync call the addr[" + address + "] timeout"));
                } else {
                    doBeforeRpcHooks(address, request);
                    invokeAsyncImpl(channel.channel(), request, left, callback);
                }
            });
            return;
        }
        SimChannel channel = connected(address);
        doBeforeRpcHooks(address, request);
        long left = timeoutMillis - (System.currentTimeMillis() - began);
        if (left < 0) {
            throw new RemotingTooMuchRequestException("invokeAsync call the addr[" + address + "] timeout");
        }
        try {
            invokeAsyncImpl(channel.channel(), request, left, callback);
        } catch (Exception e) { // that of RocketMQ 5.1.0 throws a RemotingSendRequestException
            if (e instanceof RemotingSendRequestException) {
                channel.close();
            }
            throw e;
        }
    }

    @Override
    public void invokeOneway(String address, RemotingCommand request, long timeoutMillis) throws InterruptedException,
        RemotingConnectException, RemotingTooMuchRequestException, RemotingTimeoutException, RemotingSendRequestException {
        if (!WAITS) {
            whenOpen(address, channel -> {
                if (channel == null) {
                    LOG.warning("a one-way request found no channel to " + address);
                } else {
                    doBeforeRpcHooks(address, request);
                    sendOneway(channel, request, timeoutMillis);
                }
            });
            return;
        }
        SimChannel channel = connected(address);
        doBeforeRpcHooks(address, request);
        try {
            invokeOnewayImpl(channel.channel(), request, timeoutMillis);
        } catch (RemotingSendRequestException e) {
            channel.close();
            throw e;
        }
    }

    private void sendOneway(SimChannel channel, RemotingCommand request, long timeoutMillis) {
        try {
            invokeOnewayImpl(channel.channel(), request, timeoutMillis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (RemotingException e) { // Netty logs what such a task throws
            LOG.log(Level.WARNING, "a one-way request was not sent", e);
        }
    }

    /** Does something with a channel to an address as soon as it is open; with null if it does not open in time. */
    private void whenOpen(String address, Consumer<SimChannel> then) throws InterruptedException {
        SimChannel found = byAddress.get(address);
        SimChannel channel = found == null || !found.isActive() ? begun(address) : found;
        if (channel == null) {
            then.accept(null);
            return;
        }
        channel.opened().thenAccept(open -> {
            if (!channel.isActive()) {
                channel.close();
            }
            then.accept(channel.isActive() ? channel : null);
        }).exceptionally(error -> {
            LOG.log(Level.WARNING, "a request to " + address + " failed", error); // Netty logs what such a task throws
            return null;
        });
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
            if (!WAITS) {
                channel.opened().completeOnTimeout(false, config.getConnectTimeoutMillis(), TimeUnit.MILLISECONDS);
            }
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
    public void setCallbackExecutor(ExecutorService executor) {
        callbackExecutor = executor;
    }

    @Override
    public ExecutorService getCallbackExecutor() {
        return callbackExecutor == null ? publicExecutor : callbackExecutor;
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
